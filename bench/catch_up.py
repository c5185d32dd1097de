"""How fast a stream works off a backlog: 2 million changes in 40 commits, read on 4 connections.

`mssql-cdc run` is a process of its own; its CPU time and peak resident set are what the kernel says
at its end. The server is the simulator on the same cores, so rows/s is a floor; CPU per cell is
the product's own. The last line is `rows/s: N`.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE))
sys.path.insert(0, os.fspath(HERE.parent / "tests" / "harness"))

from memory import COLUMNS, rows  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

CELLS_PER_ROW = 10 + 9  # Captured columns, and those every row of bronze has besides.


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 1])
    args = parser.parse_args()
    each = args.rows // args.commits
    speed = {}
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-catch-up-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            simulator.create("big", f"CREATE TABLE dbo.big ({COLUMNS})")
            simulator.enable("big")
            begun = time.monotonic()
            for number in range(args.commits):
                simulator.run(f"INSERT dbo.big {rows(1 + number * each, each)}")
                simulator.capture()
            print(f"(the simulator took {time.monotonic() - begun:.0f} s to write and capture)", flush=True)
            for partitions in args.partitions:
                pipeline = Pipeline(args.program, folder / f"p{partitions}", simulator, "big", "dbo_big",
                                    f"big-{partitions}", bootstrap=False, numPartitions=partitions)
                cost = pipeline.measured()
                files = len(list(pipeline.bronze.glob("*.parquet")))
                speed[partitions] = args.rows / cost.wall_seconds
                print(
                    f"{partitions} partitions: {args.rows:,} rows in {cost.wall_seconds:.1f} s, "
                    f"{speed[partitions]:,.0f} rows/s, {cost.cpu_seconds:.1f} CPU s, "
                    f"{cost.cpu_seconds / (args.rows * CELLS_PER_ROW) * 1e9:.0f} ns CPU per cell, "
                    f"peak {cost.peak_mb:.0f} MB, {files} Parquet files",
                    flush=True,
                )
        finally:
            simulator.stop()
    print(f"rows/s: {speed[args.partitions[0]]:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
