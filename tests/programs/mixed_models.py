"""Random LPs and MIPs with coefficients of mixed size, against exact arithmetic: as many as you like, on any backend.

    python -m programs.mixed_models --backend highs --count 100000

Every case is solved twice, as a whole and with some rows as cuts. It prints each wrong answer with its case, and a line
of counts at the end; the exit code is 1 if there was a wrong one. Case number i is the same model in every run.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from accel_oct.mip import create_backend
from accel_oct.mip.conformance import mixed_sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="highs", help="name of a backend, such as pyomo:cbc")
    parser.add_argument("--count", type=int, default=1000, help="number of models: half as a whole, half with cuts")
    parser.add_argument("--first", type=int, default=0, help="first case")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    tally, wrong, began = mixed_sizes.CaseCounts(), 0, time.perf_counter()
    for case in range(arguments.first, arguments.first + (arguments.count + 1) // 2):
        for lazy in (False, True):
            try:
                tally += mixed_sizes.compare(
                    lambda: create_backend(arguments.backend), [case], arguments.seed, lazy=lazy
                )
            except AssertionError as error:
                wrong += 1
                print(f"{arguments.backend}, {'lazy rows' if lazy else 'rows'}: {error}", flush=True)
    print(f"{arguments.backend}: {tally}, wrong={wrong}, {time.perf_counter() - began:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
