"""How much memory a run needs: one transaction of 5 million rows, and one value of 256 MB.

`mssql-cdc run` is a process of its own; its peak resident set is what the kernel says at its end.
The last line is `worst MB: N`; the goals are 256 MB for the transaction, and 256 MB and 2.5 times
the value for the large value.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "tests" / "harness"))

from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

DIGITS = "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))"
COLUMNS = """id int NOT NULL PRIMARY KEY, customer int NULL, status tinyint NULL, amount decimal(18,4) NULL,
  name nvarchar(50) NULL, region nvarchar(32) NULL, changed_at datetime2(7) NULL, active bit NULL,
  weight float NULL, code varchar(20) NULL"""


def rows(first: int, count: int) -> str:
    """A SELECT of `count` (a power of ten times a digit) rows of the table, ids from `first`."""
    places = len(str(count)) - 1
    joins = " CROSS JOIN ".join(f"{DIGITS} d{i}(n)" for i in range(places))
    number = " + ".join(f"d{i}.n * {10**i}" for i in range(places))
    return (
        f"SELECT {first} + k.n * {10**places} + {number}, 7, 1, 12.5, N'customer name', N'north', "
        f"'2026-01-02 03:04:05.1234567', 1, 0.5, 'code-1' FROM (VALUES "
        + ",".join(f"({i})" for i in range(count // 10**places))
        + f") k(n) CROSS JOIN {joins}"
    )


def measured(pipeline: Pipeline, what: str) -> float:
    """Runs the pipeline; returns its peak resident set in MB."""
    begun = time.monotonic()
    process = pipeline.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"the run ended with {process.returncode}:\n{output}")
    wall, cpu = time.monotonic() - begun, usage.ru_utime + usage.ru_stime
    peak = usage.ru_maxrss / 1000
    print(f"{what}: peak {peak:.0f} MB, {wall:.1f} s wall, {cpu:.1f} CPU s", flush=True)
    return peak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--value-mb", type=int, default=256)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-memory-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder, "--max-text-repl-size", "-1")
        try:
            simulator.create("big", f"CREATE TABLE dbo.big ({COLUMNS})",
                             "CREATE TABLE dbo.wide (id int NOT NULL PRIMARY KEY, v varchar(max) NULL)")
            simulator.enable("big")
            changes = Pipeline(args.program, folder / "big", simulator, "big", "dbo_big", "big-v1")
            measured(changes, "bootstrap of an empty table")
            begun = time.monotonic()
            simulator.run(f"INSERT dbo.big {rows(1, args.rows)}")
            simulator.capture()
            print(f"(the simulator took {time.monotonic() - begun:.0f} s to write and capture)")
            worst = measured(changes, f"one transaction of {args.rows:,} rows x 10 columns")

            size = args.value_mb * 1_000_000
            simulator.run(f"INSERT dbo.wide VALUES (1, REPLICATE(CAST('x' AS varchar(max)), {size}))")
            simulator.enable("wide")
            value = Pipeline(args.program, folder / "wide", simulator, "big", "dbo_wide", "wide-v1")
            peak = measured(value, f"a snapshot with one value of {args.value_mb} MB")
            print(f"beside the value: {peak - 2.5 * args.value_mb:.0f} MB beyond 2.5 times its size (goal 256)")
            worst = max(worst, peak - 2.5 * args.value_mb)
        finally:
            simulator.stop()
    print(f"worst MB: {worst:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
