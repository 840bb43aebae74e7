"""Deep frontiers on several workers, with a checkpoint file.

`regions` has the jobs that are left and knows no cluster; `workers` does them, on dask or in this thread; `table` is
the loop between the two.
"""

from accel_oct.cluster.table import spread_table
from accel_oct.cluster.workers import check_client

__all__ = ["check_client", "spread_table"]
