"""The Python package on Spark: its public API, the same rows and checkpoints as the local binary's.

One Spark session does all of it but for what must kill it. The source is one simulator; bronze of
the local binary, of the same history, is what is compared with, row by row. The last line is
`N passed, N failed`.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from spark_where import LINES, Where, bulk, facts_of  # noqa: I001  First: it sets the path.

import deltalake
import examples
import existing_package as existing
import sessions
import silver_cases
import snapshots
import turns
from existing_package import Chain, Tally, compare_bronze
from line_worker import PackageFailed, WorkerEnded
from simulator import Simulator


def import_alone(tally: Tally, where: Where) -> None:
    """The package without PySpark: what does not use it works, what does says what is missing."""
    code = (
        "import sys\n"
        "import mssql_cdc, mssql_cdc.client, mssql_cdc.lsn, mssql_cdc._core as core\n"
        "assert mssql_cdc.DataLossError.__module__ == 'mssql_cdc.client'\n"
        "assert mssql_cdc.lsn.normalize('ff') == '0x' + 'FF'.zfill(20)\n"
        "assert mssql_cdc.lsn.from_int(mssql_cdc.lsn.to_int('0x0A')) == mssql_cdc.lsn.normalize('a')\n"
        "assert 'pyspark' not in {n.split('.')[0] for n, m in sys.modules.items() if m}\n"
        "assert set(mssql_cdc.SourceOptions.__annotations__) == set(core.source_options())\n"
        "try:\n    mssql_cdc.stream\nexcept ImportError as error:\n    print(error)\n")
    # This interpreter's environment has no PySpark.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.fspath(where.args.site)))
    tally.equal("import alone", (done.returncode, done.stderr), (0, ""))
    tally.equal("import alone: names PySpark", "needs PySpark" in done.stdout, True)
    lines = subprocess.run(
        [where.args.python, "-c", "import mssql_cdc\nfor n in mssql_cdc.__all__: getattr(mssql_cdc, n)\n"
         "print(len(mssql_cdc.__all__))"], capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=os.fspath(where.args.site)))
    tally.equal("every public name", (lines.stdout.strip(), lines.stderr), ("38", ""))


SCAN = """
import json, sys
import polars
from mssql_cdc import _core

options = json.loads(sys.argv[1])
_, tasks = _core.plan_snapshot(options, None)
print("planned", flush=True)
sys.stdin.readline()
scan = _core.scan_snapshot(options, None, tasks[0])
try:
    print("scanning", flush=True)
    try:
        read = polars.DataFrame(scan)
        print(read.height, read.columns[0], flush=True)
    except Exception:
        scan.raise_failure()
        raise
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def scan_alone(tally: Tally, where: Where) -> None:
    """A scan by another library's hand, without pyarrow; Ctrl-C ends one that waits for a lock."""
    simulator = where.simulator
    simulator.create("scans", existing.ORDERS)
    existing.fill_orders(simulator, 1, 25)
    simulator.enable("orders")
    options = {**Chain(where, "scans", "dbo_orders").options, "numPartitions": "1"}
    for held in (False, True):
        process = subprocess.Popen(
            [sys.executable, "-c", SCAN, json.dumps(options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=dict(os.environ, PYTHONPATH=os.fspath(where.args.site)),
            # A program that a shell started in the background ignores it, and its children too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        tally.equal("scan: planned", process.stdout.readline().strip(), "planned")
        if held:
            simulator.run("EXEC sim.hold_lock 'dbo.orders'")
        process.stdin.write("go\n")
        process.stdin.flush()
        tally.equal("scan: begins", process.stdout.readline().strip(), "scanning")
        if held:
            process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=120)
        tally.equal("scan: told", told.strip(), "interrupted" if held else "25 _capture_instance")
    simulator.run("EXEC sim.release_lock 'dbo.orders'")


def reference_examples(tally: Tally, where: Where) -> None:
    """What users copy from the reference pages."""
    simulator = where.simulator
    simulator.create("reference", existing.ORDERS, LINES)
    existing.fill_orders(simulator, 1, 60)
    for order in range(1, 5):
        simulator.run(f"INSERT dbo.lines VALUES ({order}, 1, 'a'), ({order}, 2, NULL)")
    simulator.enable("orders")
    simulator.enable("lines")
    chain = Chain(where, "reference", "dbo_orders")
    root = where.folder / "reference-spark"

    def run(code: str):
        return where.package.do("run", code=code.format(root=root, db="reference_bronze"),
                                options=chain.options)

    where.package.do("run", code="spark.sql('CREATE SCHEMA reference_bronze LOCATION "
                     f"\"{root}/warehouse\"')")
    with_secret = "secret = lambda name: options['password']\n"
    tally.equal("smallest bootstrap", run(examples.SMALLEST_BOOTSTRAP), 60)
    simulator.run("UPDATE dbo.orders SET amount = 1 WHERE id <= 5")
    simulator.run("DELETE dbo.orders WHERE id = 60")
    simulator.capture()
    tally.equal("always on", run(examples.ALWAYS_ON), 60 + 10 + 1)
    tally.equal("the same again reads nothing", run(examples.SMALLEST_BOOTSTRAP), 71)
    tally.equal("source options", run(with_secret + examples.SOURCE_OPTIONS), True)
    tally.equal("snapshot alone", run(examples.SNAPSHOT_ALONE),
                [True, True, ["commit_ts", "lsn"], [], 2 * 59])
    count, stamps, columns = run(examples.SNAPSHOT_ELSEWHERE)
    tally.equal("snapshot elsewhere", (count, stamps), (59, 1))
    tally.equal("snapshot elsewhere: columns", columns,
                ["_capture_instance", "_start_lsn", "_seqval", "_operation", "_command_id",
                 "_commit_ts", "id", "customer", "amount", "note"])
    tally.equal("by hand", run(examples.BY_HAND), [11, True, 11])
    tally.equal("many", run(examples.MANY),
                [["dbo_lines", "dbo_orders"], {}, ["dbo_lines-v1", "dbo_orders-v1"]])
    tally.equal("data loss", run(examples.DATA_LOSS), [True, True, False, True])
    refused = run(examples.REFUSED)
    for what, kind in examples.REFUSED_AS.items():
        tally.equal(f"refused, {what}: {refused[what][1]:.200}", refused[what][0], kind)
    told = json.dumps(refused)
    for secret in (simulator.password, "Wrong-canary-3"):
        tally.equal("no secret in what is told", secret in told, False)


# Not batch_id: Spark begins a new checkpoint with a batch of nothing.
COUNTED = ["app_id", "rows", "min_lsn", "max_lsn", "min_commit_ts", "max_commit_ts",
           "deletes", "inserts", "updates", "event", "end_lsn", "end_commit_ts", "detail"]
MEASURED = ["read_seconds", "read_mb", "source_rtt_ms", "retention_watermark_ts",
            "source_max_commit_ts", "capture_lag_seconds", "ingestion_lag_seconds",
            "retention_headroom_hours", "duration_ms", "started_at", "written_at", "target"]


def same_facts(tally: Tally, where: Where) -> None:
    """Small and large batches of both runtimes: the same rows, counts and commit metadata."""
    simulator = where.simulator
    simulator.create("facts", existing.ORDERS)
    existing.fill_orders(simulator, 1, 30)
    simulator.enable("orders")
    chain = Chain(where, "facts", "dbo_orders")
    chain.both()
    existing.change_orders(simulator)
    chain.both()
    simulator.run("INSERT dbo.orders (id, customer) VALUES (70000, N'x')")
    simulator.run(bulk(100_000, 12))
    simulator.capture()
    chain.both()
    compare_bronze(tally, "facts", chain, ["id"])
    theirs, ours = facts_of(chain.facts), facts_of(chain.ours.facts)
    for kind in ("batch", "event"):
        def of(rows):
            return [{name: row[name] for name in COUNTED} for row in rows
                    if (row["event"] is None) == (kind == "batch") and row["rows"] != 0]
        tally.equal(f"facts: {kind} rows", of(theirs), of(ours))
    for row in theirs:
        if row["event"] is None and row["rows"]:
            missing = [name for name in MEASURED if row[name] is None]
            tally.equal(f"facts of batch {row['batch_id']}: measured", missing, [])
    for table in (chain.bronze, chain.facts):
        delta = deltalake.DeltaTable(os.fspath(table))
        theirs_made = (delta.metadata().description, delta.metadata().configuration)
        twin = deltalake.DeltaTable(os.fspath(chain.ours.bronze if table == chain.bronze
                                              else chain.ours.facts))
        tally.equal(f"facts: {table.name} is made as the local binary makes it", theirs_made,
                    (twin.metadata().description, twin.metadata().configuration))


def values(tally: Tally, where: Where) -> None:
    existing.values_through_both(tally, where)


def in_turns(tally: Tally, where: Where) -> None:
    existing.taking_turns(tally, where)


PARTS = {part.__name__: part for part in (
    import_alone, scan_alone, values, reference_examples, same_facts, in_turns, turns.no_logins,
    turns.pending_both_ways, turns.three_in_turn, *snapshots.PARTS, silver_cases.silver_cases,
    *sessions.PARTS, turns.two_workers, turns.lost_workers)}
# What `./dev test` runs; `./dev spark` runs all.
QUICK = ["import_alone", "scan_alone", "reference_examples", "in_turns", "chunked_examples",
         "silver_examples", "silver_cases"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True,
                        help="of the environment that has pyspark and not the existing package")
    parser.add_argument("--site", type=pathlib.Path, required=True,
                        help="the folder the wheel is unpacked in")
    parser.add_argument("--jars", type=pathlib.Path, required=True, help="folder of Delta's jars")
    parser.add_argument("--peer", type=pathlib.Path, required=True,
                        help="Python of the environment that has the existing package")
    parser.add_argument("--older", type=pathlib.Path,
                        help="Python of an environment with Spark 4.1, for older_spark")
    parser.add_argument("--only", choices=PARTS, nargs="+")
    parser.add_argument("--quick", action="store_true", help="the parts of ./dev test")
    parser.add_argument("--log", type=pathlib.Path, default=None)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-spark-") as root:
        folder = pathlib.Path(root)
        simulator = Simulator(args.program, folder)
        jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
        where = Where(args, folder, simulator, jars)
        try:
            for name in args.only or (QUICK if args.quick else PARTS):
                before, begun = (tally.passed, tally.failed), time.monotonic()
                try:
                    PARTS[name](tally, where)
                except (PackageFailed, WorkerEnded) as failure:
                    tally.failed += 1
                    print(f"FAILED {name}: {failure}", flush=True)
                    where.revive()
                print(f"{name}: {tally.passed - before[0]} passed, "
                      f"{tally.failed - before[1]} failed, "
                      f"{time.monotonic() - begun:.0f} s", flush=True)
        finally:
            where.package.process.kill()
            simulator.stop()
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
