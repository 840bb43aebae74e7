"""Tables in files: CSV, TSV, Parquet, Feather and Excel, compressed or not."""

from accel_oct.io.reading import read_table
from accel_oct.io.writing import write_columns, write_csv

__all__ = ["read_table", "write_columns", "write_csv"]
