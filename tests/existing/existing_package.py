"""The existing package on Spark and the local runtime read one simulated server: bronze for bronze.

Both bootstrap and stream the same history while nothing captures between their reads, so the LSN
stands still for each snapshot and every column but `_batch_id` must agree, row by row. The package
then backfills a table in chunks, applies bronze to silver and reconciles, all through Microsoft's
driver; its silver must be the source as python-tds reads it, and equal to that of `mssql-cdc apply`
(existing_silver.py). Both take turns on one checkpoint. The last line is `N passed, N failed`, a row of bronze being one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / "harness"), os.fspath(HERE.parent / "values")]

import deltalake  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltalake import QueryBuilder  # noqa: E402
from chain import (  # noqa: E402
    COLUMNS, ORDERS, Chain, Where, change_orders, compare_bronze, compare_chunks, compare_silver,
    fill_orders)
from check_values import ROWS, Table, must_run  # noqa: E402
from existing_silver import silver_like_theirs, silver_of_composite_keys  # noqa: E402
from line_worker import Package, PackageFailed  # noqa: E402
from older_tables import older_versions  # noqa: E402
from open_states import (  # noqa: E402
    open_chunked_snapshots, open_full_snapshots, open_recoveries)
from package_worker import canonical_text  # noqa: E402
from package_turns import chunks_in_turns, losses_in_turns, taking_turns  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

# The package's type map has no place for it, nor has ours (docs/formats.md).
UNMAPPED = ("sql_variant",)


def values_through_both(tally: Tally, where: Where) -> None:
    """The table of values of every mapped type: snapshot, insert, update, delete."""
    every = json.loads((HERE.parent / "peers" / "values.json").read_text())
    table = Table([c for c in every if not c["type"].startswith(UNMAPPED)])
    simulator = where.simulator
    simulator.create("vals", table.create("v"))
    for number, row in enumerate(ROWS):
        simulator.run(table.insert("v", number, row))
    simulator.enable("v")
    chain = Chain(where, "vals", "dbo_v")
    chain.both()
    for number, row in enumerate(ROWS):
        simulator.run(table.insert("v", 100 + number, row))
    for number in range(len(ROWS)):
        simulator.run(table.update("v", 100 + number, ROWS[(number + 1) % len(ROWS)]))
    for number in range(len(ROWS)):
        simulator.run(f"DELETE dbo.v WHERE id = {100 + number}")
    simulator.capture()
    chain.both()
    compare_bronze(tally, "values", chain, ["id"])


def bootstrap_stream_silver(tally: Tally, where: Where) -> None:
    simulator = where.simulator
    simulator.create("shop", ORDERS)
    fill_orders(simulator, 1, 1500)
    simulator.enable("orders")
    chain = Chain(where, "shop", "dbo_orders")
    chain.both()
    compare_bronze(tally, "bootstrap", chain, ["id"])
    tally.equal("apply_changes after the bootstrap", chain.apply()["bronze_found"], True)
    change_orders(simulator)
    chain.both()
    fill_orders(simulator, 20_001, 20)
    simulator.capture()
    chain.both()
    compare_bronze(tally, "bootstrap and stream", chain, ["id"])
    chain.apply()
    compare_silver(tally, "stream", chain, "shop", "dbo.orders", COLUMNS)
    told = chain.reconcile()
    tally.equal("reconcile: buckets that differ", told["mismatch"], 0)
    tally.equal("reconcile: buckets that agree", told["match"] > 0, True)
    tally.equal("reconcile: failures", told["failures"], {})
    # A row that CDC has not captured is a difference; were it not found, "none" meant nothing.
    simulator.run("INSERT dbo.orders (id, customer) VALUES (30001, N'not captured')")
    told = chain.reconcile()
    tally.equal("reconcile: sees a row that was not captured",
                told["mismatch"] + told["in_flight"] > 0, True)
    simulator.capture()


def chunked_backfill(tally: Tally, where: Where) -> None:
    simulator = where.simulator
    simulator.create("chunks", ORDERS, """CREATE TABLE dbo.lines (order_id int NOT NULL,
line_no smallint NOT NULL, sku varchar(20) NULL, PRIMARY KEY (order_id, line_no))""")
    fill_orders(simulator, 1, 1500)
    for order in range(1, 60):
        rows = ", ".join(f"({order}, {line}, 's{order}-{line}')" for line in range(order % 5 + 1))
        simulator.run(f"INSERT dbo.lines (order_id, line_no, sku) VALUES {rows}")
    simulator.enable("orders")
    simulator.enable("lines")
    tables = {"dbo_orders": (COLUMNS, ["id"], 100),
              "dbo_lines": (["order_id", "line_no", "sku"], ["order_id", "line_no"], 40)}
    for capture_instance, (columns, key, chunk_rows) in tables.items():
        chain = Chain(where, "chunks", capture_instance, snapshot="chunked", numPartitions="2")
        # LSNs stand still while one reads after the other, so that stamps agree as well.
        simulator.run("EXEC sim.freeze_lsn")
        chain.stream(bootstrap=True, snapshot="chunked")
        must_run(chain.ours)
        simulator.run("EXEC sim.unfreeze_lsn")
        if capture_instance == "dbo_orders":
            change_orders(simulator)
        simulator.run("UPDATE dbo.lines SET sku = 'new' WHERE order_id = 30")
        simulator.capture()
        for waves in (1, None):
            simulator.run("EXEC sim.freeze_lsn")
            status = where.package.do(
                "backfill", options=chain.options, target=chain.bronze,
                app_id=f"{capture_instance}-v1", facts=chain.facts, chunk_rows=chunk_rows,
                target_wave_seconds=0, **({"max_waves": waves} if waves else {}))
            code, output = chain.ours.run("backfill", (
                "--chunk-rows", str(chunk_rows), "--target-wave-seconds", "0",
                *(("--max-waves", str(waves)) if waves else ())))
            tally.equal(f"{capture_instance}: our backfill ({output[-300:]})", code,
                        75 if waves else 0)
            simulator.run("EXEC sim.unfreeze_lsn")
            if waves:
                simulator.run("UPDATE dbo.orders SET id = id + 5000 WHERE id IN (50, 1200)")
                simulator.run("DELETE dbo.lines WHERE order_id = 50")
                simulator.capture()
        tally.equal(f"{capture_instance}: backfill done", status["done"], True)
        tally.equal(f"{capture_instance}: more than one chunk", status["chunks_total"] > 1, True)
        chain.stream(bootstrap=True, snapshot="chunked")
        must_run(chain.ours)
        compare_bronze(tally, f"{capture_instance} in chunks", chain, key)
        compare_chunks(tally, capture_instance, chain)
        chain.apply()
        compare_silver(tally, f"{capture_instance} in chunks", chain, "chunks",
                       capture_instance.replace("_", ".", 1), columns)
        told = chain.reconcile()
        tally.equal(f"{capture_instance}: reconcile finds no difference", told["mismatch"], 0)


def tables_read_by_spark(tally: Tally, where: Where) -> None:
    """Tables of every kind our lake writes, in Spark as delta-rs's query engine has them."""
    folder = where.folder / "tables"
    folder.mkdir()
    subprocess.run([where.write_tables, "tables", folder], check=True)
    tables = sorted(path.parent for path in folder.glob("*/_delta_log"))
    tally.equal("tables for Spark", len(tables) > 3, True)
    for table in tables:
        engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(table)))
        read = pa.table(engine.execute("SELECT * FROM t").read_all())
        want = [[canonical_text(value) for value in row.values()] for row in read.to_pylist()]
        columns, *got = where.package.do("read", table=table)
        tally.equal(f"{table.name}: columns in Spark", columns, read.column_names)
        tally.equal(f"{table.name}: rows in Spark", len(got), len(want))
        for got_row, want_row in zip(sorted(got, key=null_first), sorted(want, key=null_first)):
            tally.equal(f"{table.name}: a row in Spark", got_row, want_row)


def null_first(row: list[str | None]):
    return [(value is not None, value) for value in row]


PARTS = [tables_read_by_spark, values_through_both, bootstrap_stream_silver, chunked_backfill, taking_turns,
         silver_of_composite_keys, chunks_in_turns, losses_in_turns, silver_like_theirs, open_full_snapshots,
         open_chunked_snapshots, open_recoveries, older_versions]
# `./dev existing` alone runs these: minutes each.
DEAR = [chunks_in_turns, losses_in_turns, silver_like_theirs, open_chunked_snapshots,
        open_recoveries, older_versions]


def work(args: argparse.Namespace, number: int, parts: Iterator) -> Tally:
    """Runs parts until none is left, with a simulator, a Spark session and a folder of its own."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-existing-") as name:
        folder = pathlib.Path(name)
        log = args.log.with_name(f"{args.log.name}.{number}") if args.log else folder / "worker.log"
        simulator = Simulator(args.program, folder)
        jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
        package = Package(args.python, jars, log, HERE / "package_worker.py")
        where = Where(args.program, args.write_tables, folder, simulator, package)
        try:
            tally.equal("the package's version", package.do("version"), "0.8.0")
            for part in parts:
                run_part(part, tally, where)
            package.stop()
        finally:
            package.process.kill()
            simulator.stop()
    return tally


def run_part(part, tally: Tally, where: Where) -> None:
    package = where.package
    begun, calls, cpu = time.monotonic(), package.calls, package.cpu_seconds()
    passed, failed = tally.passed, tally.failed
    try:
        part(tally, where)
    except PackageFailed as failure:
        tally.failed += 1
        print(f"FAILED {part.__name__}: {failure}")
    print(f"{part.__name__}: {tally.passed - passed} passed, {tally.failed - failed} failed in "
          f"{time.monotonic() - begun:.0f} s, the package did {package.calls - calls} things in "
          f"{package.cpu_seconds() - cpu:.0f} CPU s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--write-tables", type=pathlib.Path, required=True,
                        help="the program that writes a table of each kind")
    parser.add_argument("--python", type=pathlib.Path, required=True,
                        help="of the environment that has the package and pyspark")
    parser.add_argument("--jars", type=pathlib.Path, required=True, help="folder of Delta's jars")
    parser.add_argument("--only", nargs="+", choices=[part.__name__ for part in PARTS])
    parser.add_argument("--quick", action="store_true", help="the parts of ./dev test")
    parser.add_argument("--jobs", type=int, default=1, help="parts at once, each with a JVM")
    parser.add_argument("--log", type=pathlib.Path, default=None)
    args = parser.parse_args()
    chosen = [part for part in PARTS
              if not (args.only and part.__name__ not in args.only or args.quick and part in DEAR)]
    parts = iter(chosen)  # Each part goes to whoever asks next.
    jobs, total = min(args.jobs, len(chosen)), Tally()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for tally in pool.map(lambda number: work(args, number, parts), range(jobs)):
            total.passed += tally.passed
            total.failed += tally.failed
    return total.close()


if __name__ == "__main__":
    sys.exit(main())
