"""How much memory a run needs: one transaction of 5 million rows, and one value of 256 MB.

`mssql-cdc run` is a process of its own; its peak resident set is what the kernel says at its end.
The large value is read as text and as bytes, by a snapshot and as a change. The last line is
`worst MB: N`, of a large value without 2.5 times its size; the goal is 256 MB for all.
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


# By column type: an expression for a value of so many bytes, as SQL Server stores it.
LARGE_VALUES = {
    "varchar(max)": lambda size: f"REPLICATE(CAST('x' AS varchar(max)), {size})",
    "nvarchar(max)": lambda size: f"REPLICATE(CAST(N'\u0436' AS nvarchar(max)), {size // 2})",
    "varbinary(max)":
        lambda size: f"CAST(REPLICATE(CAST('xyz-' AS varchar(max)), {size // 4}) AS varbinary(max))",
}


def measured(pipeline: Pipeline, what: str) -> float:
    """Runs the pipeline; returns its peak resident set in MB."""
    cost = pipeline.measured()
    print(f"{what}: peak {cost.peak_mb:.0f} MB, {cost.wall_seconds:.1f} s wall, "
          f"{cost.cpu_seconds:.1f} CPU s", flush=True)
    return cost.peak_mb


def large_value(program: pathlib.Path, folder: pathlib.Path, simulator: Simulator, table: str,
                kind: str, value: str) -> float:
    """The worse of a snapshot with one such value and a batch with another; MB."""
    simulator.run(f"CREATE TABLE dbo.{table} (id int NOT NULL PRIMARY KEY, v {kind} NULL)")
    simulator.run(f"INSERT dbo.{table} VALUES (1, {value})")
    simulator.enable(table)
    pipeline = Pipeline(program, folder / table, simulator, "big", f"dbo_{table}", f"{table}-v1")
    snapshot = measured(pipeline, f"a snapshot with one large {kind}")
    simulator.run(f"INSERT dbo.{table} VALUES (2, {value})")
    simulator.capture()
    return max(snapshot, measured(pipeline, f"a change with one large {kind}"))


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
            simulator.create("big", f"CREATE TABLE dbo.big ({COLUMNS})")
            simulator.enable("big")
            changes = Pipeline(args.program, folder / "big", simulator, "big", "dbo_big", "big-v1")
            measured(changes, "bootstrap of an empty table")
            begun = time.monotonic()
            simulator.run(f"INSERT dbo.big {rows(1, args.rows)}")
            simulator.capture()
            print(f"(the simulator took {time.monotonic() - begun:.0f} s to write and capture)")
            worst = measured(changes, f"one transaction of {args.rows:,} rows x 10 columns")

            for index, (kind, value) in enumerate(LARGE_VALUES.items()):
                peak = large_value(args.program, folder, simulator, f"wide{index}", kind,
                                   value(args.value_mb * 1_000_000))
                print(f"beyond 2.5 times the value: {peak - 2.5 * args.value_mb:.0f} MB")
                worst = max(worst, peak - 2.5 * args.value_mb)
        finally:
            simulator.stop()
    print(f"worst MB: {worst:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
