"""Deep frontiers on several workers: what is computed where, and what is kept in a file meanwhile.

`regions` knows which pieces of work are left and needs no cluster; `workers` does them, on dask or here; `table` is the
loop between the two.
"""

from accel_oct.cluster.table import spread_table
from accel_oct.cluster.workers import check_client

__all__ = ["check_client", "spread_table"]
