"""Reading and writing tables: CSV, TSV, Parquet, Feather and Excel files, optionally compressed."""

from accel_oct.io.tables import read_table, write_columns, write_csv

__all__ = ["read_table", "write_columns", "write_csv"]
