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

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / name) for name in ("harness", "values", "existing")]

import deltalake  # noqa: E402
import existing_package as existing  # noqa: E402
import examples  # noqa: E402
from check_values import must_run  # noqa: E402
from existing_package import Chain, Package, PackageFailed, Tally, compare_bronze  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

LINES = """CREATE TABLE dbo.lines (order_id int NOT NULL, line_no smallint NOT NULL,
sku varchar(20) NULL, PRIMARY KEY (order_id, line_no))"""


class Where(existing.Where):
    """What the parts share; `package` is a worker, made anew after one died."""

    def __init__(self, args, folder, simulator, jars) -> None:
        super().__init__(args.program, None, folder, simulator, None)
        self.args, self.jars = args, jars
        self.package = self.worker()

    def worker(self, **environment: str) -> Package:
        return Package(self.args.python, self.jars, self.args.log or self.folder / "worker.log",
                       HERE / "spark_worker.py", PYTHONPATH=os.fspath(self.args.site),
                       PYTHONDONTWRITEBYTECODE="1", **environment)

    def revive(self) -> None:
        self.package.process.kill()
        self.package.process.wait()
        self.package = self.worker()


def bulk(first: int, ten_thousands: int) -> str:
    """INSERT of so many times 10,000 orders: more than one range of a batch."""
    digits = "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))"
    joins = " CROSS JOIN ".join(f"{digits} d{i}(n)" for i in range(4))
    number = " + ".join(f"d{i}.n * {10 ** i}" for i in range(4))
    times = ",".join(f"({i})" for i in range(ten_thousands))
    return (f"INSERT dbo.orders (id, customer, amount, note) SELECT {first} + k.n * 10000 + {number}, "
            f"N'bulk', 1.5, N'n' FROM (VALUES {times}) k(n) CROSS JOIN {joins}")


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
            env=dict(os.environ, PYTHONPATH=os.fspath(where.args.site)))
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


def facts_of(table: pathlib.Path) -> list[dict]:
    read = deltalake.DeltaTable(os.fspath(table)).to_pyarrow_table().to_pylist()
    return sorted(read, key=lambda row: (row["batch_id"] is None, row["batch_id"], str(row["event"])))


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


def pending_both_ways(tally: Tally, where: Where) -> None:
    """The switch with a batch begun and not done, from Spark to the local binary and back."""
    simulator = where.simulator
    simulator.create("pending", existing.ORDERS)
    existing.fill_orders(simulator, 1, 20)
    simulator.enable("orders")
    chain = Chain(where, "pending", "dbo_orders")
    alone = Pipeline(where.program, where.folder / "pending" / "alone", simulator, "pending",
                     "dbo_orders", "dbo_orders-v1")
    ours = chain.ours
    chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
    must_run(ours)
    must_run(alone)
    for number, where_to_die in enumerate(("before the rows", "between rows and facts",
                                           "between facts and checkpoint")):
        for spark_goes_on in (False, True):
            first = 1000 * (number + 1) + 100 * spark_goes_on
            existing.fill_orders(simulator, first, 5)
            simulator.run(f"UPDATE dbo.orders SET amount = {first} WHERE id <= 3")
            simulator.capture()
            try:
                where.package.do("die", where=where_to_die, options=chain.options,
                                 target=chain.bronze, app_id="dbo_orders-v1",
                                 checkpoint=chain.checkpoint, facts=chain.facts, bootstrap=True)
                tally.equal(f"died {where_to_die}", True, False)
            except WorkerEnded:
                pass
            where.revive()
            pending = newest(ours.checkpoint / "offsets") - newest(ours.checkpoint / "commits")
            tally.equal(f"{where_to_die}: a batch is pending", pending, 1)
            existing.fill_orders(simulator, first + 50, 2)
            simulator.capture()
            if spark_goes_on:
                chain.stream(bootstrap=True)
            else:
                must_run(ours)
            must_run(alone)
    # What the local binary leaves pending, Spark does.
    existing.fill_orders(simulator, 9000, 4)
    simulator.capture()
    must_run(ours)
    last = newest(ours.checkpoint / "commits")
    (ours.checkpoint / "commits" / str(last)).unlink()
    existing.fill_orders(simulator, 9100, 4)
    simulator.capture()
    chain.stream(bootstrap=True)
    must_run(alone)
    chain.ours = alone
    compare_bronze(tally, "pending", chain, ["id"])
    batches = [row["batch_id"] for row in facts_of(ours.facts) if row["event"] is None]
    tally.equal("pending: one facts row a batch, none left out", batches,
                list(range(batches[0], batches[0] + len(batches))))
    rows = sum(row["rows"] for row in facts_of(ours.facts) if row["event"] is None)
    changes = deltalake.DeltaTable(os.fspath(ours.bronze)).to_pyarrow_table().column("_operation")
    tally.equal("pending: the facts count what is there", rows,
                sum(1 for operation in changes.to_pylist() if operation != 0))


def three_in_turn(tally: Tally, where: Where) -> None:
    """The existing package too: one checkpoint and one bronze, continued by whoever comes."""
    simulator = where.simulator
    simulator.create("three", existing.ORDERS)
    existing.fill_orders(simulator, 1, 20)
    simulator.enable("orders")
    chain = Chain(where, "three", "dbo_orders")
    ours = chain.ours
    chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
    alone = Pipeline(where.program, where.folder / "three" / "alone", simulator, "three",
                     "dbo_orders", "dbo_orders-v1")
    own = where.package
    peer = Package(where.args.peer, where.jars, where.folder / "peer.log")
    try:
        for turn, who in enumerate(("spark", "existing", "spark", "local", "existing", "spark")):
            existing.fill_orders(simulator, 1000 * (turn + 1), 3)
            simulator.run(f"UPDATE dbo.orders SET amount = amount + {turn} WHERE id < 4")
            if turn:
                simulator.capture()
            if who == "local":
                must_run(ours)
            else:
                where.package = own if who == "spark" else peer
                chain.stream(bootstrap=True)
            must_run(alone)
        peer.stop()
    finally:
        where.package = own
        peer.process.kill()
    chain.ours = alone
    compare_bronze(tally, "three in turn", chain, ["id"])
    batches = [row["batch_id"] for row in facts_of(ours.facts) if row["event"] is None]
    tally.equal("three in turn: one facts row a batch, none left out", batches,
                list(range(batches[0], batches[0] + len(batches))))


def newest(log: pathlib.Path) -> int:
    return max(int(path.name) for path in log.iterdir() if path.name.isdigit())


class WorkerEnded(Exception):
    pass


def spid(simulator: Simulator) -> int:
    """The number of a session made now: they count up with every login."""
    connection = simulator.connect("master")
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@SPID")
        (number,) = cursor.fetchone()
    connection.close()
    return number


def no_logins(tally: Tally, where: Where) -> None:
    """Batches 2 to n of a query whose workers live log in nowhere."""
    simulator = where.simulator
    simulator.create("logins", existing.ORDERS)
    existing.fill_orders(simulator, 1, 10)
    simulator.enable("orders")
    chain = Chain(where, "logins", "dbo_orders")
    chain.options["numPartitions"] = "1"
    where.package.do("start", query="logins", options=chain.options, target=chain.bronze,
                     app_id="logins-v1", checkpoint=chain.checkpoint, facts=chain.facts,
                     bootstrap=True)
    seen = []
    for number in range(6):
        existing.fill_orders(simulator, 1000 + 10 * number, 3)
        simulator.capture()
        batches = where.package.do("catch_up", query="logins")
        seen.append(spid(simulator))
    where.package.do("finish", query="logins")
    tally.equal("logins: batches ran", len(batches) >= 6, True)
    # From the second batch on, each probe's own login is the only one.
    tally.equal("logins: after batches 2 to 6", [b - a for a, b in zip(seen[1:], seen[2:])], [1] * 4)


def two_workers(tally: Tally, where: Where) -> None:
    """Executors in processes of their own, with the package on their own path only."""
    simulator = where.simulator
    simulator.create("cluster", existing.ORDERS)
    existing.fill_orders(simulator, 1, 500)
    simulator.enable("orders")
    chain = Chain(where, "cluster", "dbo_orders")
    where.package.stop()
    where.package = where.worker(MSSQL_CDC_TEST_MASTER="local-cluster[2,1,2048]",
                                 MSSQL_CDC_TEST_SITE=os.fspath(where.args.site))
    chain.both()
    existing.change_orders(simulator)
    simulator.run(bulk(100_000, 12))
    simulator.capture()
    chain.both()
    compare_bronze(tally, "two workers", chain, ["id"])


def values(tally: Tally, where: Where) -> None:
    existing.values_through_both(tally, where)


def turns(tally: Tally, where: Where) -> None:
    existing.taking_turns(tally, where)


PARTS = [import_alone, scan_alone, values, reference_examples, same_facts, turns, no_logins,
         pending_both_ways, three_in_turn, two_workers]


def ended(self) -> None:
    raise WorkerEnded(self.log.read_text()[-3000:])


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
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], nargs="+")
    parser.add_argument("--log", type=pathlib.Path, default=None)
    args = parser.parse_args()
    tally = Tally()
    Package.ended = ended
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-spark-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
        where = Where(args, folder, simulator, jars)
        try:
            for part in PARTS:
                if args.only and part.__name__ not in args.only:
                    continue
                before = (tally.passed, tally.failed)
                try:
                    part(tally, where)
                except (PackageFailed, WorkerEnded) as failure:
                    tally.failed += 1
                    print(f"FAILED {part.__name__}: {failure}", flush=True)
                    where.revive()
                print(f"{part.__name__}: {tally.passed - before[0]} passed, "
                      f"{tally.failed - before[1]} failed so far", flush=True)
            where.package.stop()
        finally:
            where.package.process.kill()
            simulator.stop()
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
