"""Other packages on the same instances: one adapter per package, each optional.

`PEERS` has them by name. To add one, write a module with a `Peer` and put it into the tuple below;
docs/bench-reports.md says more.
"""

from __future__ import annotations

from accel_oct_bench.peers.base import Peer, PeerError, Problem, measured
from accel_oct_bench.peers.cart import CART
from accel_oct_bench.peers.contree import CONTREE
from accel_oct_bench.peers.dl85 import DL85
from accel_oct_bench.peers.gosdt import GOSDT
from accel_oct_bench.peers.imodels import IMODELS
from accel_oct_bench.peers.licketysplit import LICKETYSPLIT
from accel_oct_bench.peers.odtlearn import ODTLEARN
from accel_oct_bench.peers.praxis import PRAXIS
from accel_oct_bench.peers.pytrees import PYTREES
from accel_oct_bench.peers.streed import STREED
from accel_oct_bench.peers.treefarms import TREEFARMS

__all__ = ["PEERS", "Peer", "PeerError", "Problem", "measured"]

_ALL = (CART, STREED, ODTLEARN, GOSDT, CONTREE, DL85, TREEFARMS, IMODELS, *PYTREES, PRAXIS, LICKETYSPLIT)

PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
