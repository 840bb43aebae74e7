"""Tables in files: CSV, TSV, Parquet, Feather and Excel, compressed or not."""

from accel_oct.io.tables import read_table, write_columns, write_csv

__all__ = ["read_table", "write_columns", "write_csv"]
