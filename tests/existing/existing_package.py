"""The existing package on Spark and the local runtime read one simulated server: bronze for bronze.

Both bootstrap and stream the same history while nothing captures between their reads, so the LSN
stands still for each snapshot and every column but `_batch_id` must agree, row by row. The package
then backfills a table in chunks, applies bronze to silver and reconciles, all through Microsoft's
driver; its silver must be the source as python-tds reads it, and equal to that of `mssql-cdc apply`
(existing_silver.py). Both take turns on one checkpoint. The last line is `N passed, N failed`, a row of bronze being one.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / "harness"), os.fspath(HERE.parent / "values")]

import deltalake  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltalake import QueryBuilder  # noqa: E402
from check_values import ROWS, Table, must_run  # noqa: E402
from existing_silver import silver_like_theirs  # noqa: E402
from line_worker import Package, PackageFailed  # noqa: E402
from package_worker import canonical_text  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

# The package's type map has no place for it, nor has ours (docs/formats.md).
UNMAPPED = ("sql_variant",)


class Chain:
    """One capture instance read by both into tables of their own."""

    def __init__(self, where: Where, database: str, capture_instance: str) -> None:
        self.where = where
        self.capture_instance = capture_instance
        folder = where.folder / database / capture_instance
        self.ours = Pipeline(where.program, folder / "ours", where.simulator, database,
                             capture_instance, f"{capture_instance}-v1")
        self.bronze, self.silver = folder / "bronze", folder / "silver"
        self.facts, self.control = folder / "facts", folder / "control"
        self.checkpoint = folder / "checkpoint"
        simulator = where.simulator
        self.options = {
            "connectionString": f"Server={simulator.host},{simulator.port};Database={database};"
            "Encrypt=yes;TrustServerCertificate=yes",
            "user": simulator.user, "password": simulator.password,
            "captureInstance": capture_instance, "numPartitions": "2",
        }

    def stream(self, **more) -> None:
        self.where.package.do("stream", options=self.options, target=self.bronze,
                              app_id=f"{self.capture_instance}-v1", checkpoint=self.checkpoint,
                              facts=self.facts, **more)

    def both(self) -> None:
        self.stream(bootstrap=True)
        must_run(self.ours)

    def apply(self) -> dict:
        return self.where.package.do("apply", bronze=self.bronze, silver=self.silver,
                                     control=self.control, facts=self.facts, options=self.options)

    def reconcile(self) -> dict:
        return self.where.package.do("reconcile", options=self.options, silver=self.silver,
                                     bronze=self.bronze, control=self.control, facts=self.facts,
                                     sample=1.0)


class Where:
    def __init__(self, program, write_tables, folder, simulator, package) -> None:
        self.program, self.write_tables, self.folder = program, write_tables, folder
        self.simulator, self.package = simulator, package


def rows_of(table: pathlib.Path, key: list[str]) -> list[dict]:
    """Bronze in the order of its changes, without what a reader may choose for itself."""
    read = deltalake.DeltaTable(os.fspath(table)).to_pyarrow_table().to_pylist()
    for row in read:
        del row["_batch_id"]
    order = ["_start_lsn", "_command_id", "_seqval", "_operation", *key]
    return sorted(read, key=lambda row: [(row[name] is not None, row[name]) for name in order])


def compare_bronze(tally: Tally, what: str, chain: Chain, key: list[str]) -> None:
    theirs, ours = rows_of(chain.bronze, key), rows_of(chain.ours.bronze, key)
    tally.equal(f"{what}: rows", len(theirs), len(ours))
    tally.equal(f"{what}: there are rows", bool(theirs), True)
    if theirs and ours:
        tally.equal(f"{what}: columns in order", list(theirs[0]), list(ours[0]))
    for number, (their_row, our_row) in enumerate(zip(theirs, ours)):
        for name, value in our_row.items():
            got = their_row.get(name, "no such column")
            if type(got) is not type(value) or got != value:
                tally.equal(f"{what}: row {number} ({our_row['_start_lsn']} operation "
                            f"{our_row['_operation']}) {name}", got, value)
                break
        else:
            tally.passed += 1


def compare_silver(tally: Tally, what: str, chain: Chain, database: str, table: str,
                   columns: list[str]) -> None:
    """Silver against the source as python-tds reads it."""
    connection = chain.where.simulator.connect(database)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")
        source = sorted(tuple(row) for row in cursor.fetchall())
    connection.close()
    silver = deltalake.DeltaTable(os.fspath(chain.silver)).to_pyarrow_table().to_pylist()
    tally.equal(f"{what}: silver is the source",
                sorted(tuple(row[name] for name in columns) for row in silver), source)


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


ORDERS = """CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, customer nvarchar(40) NULL,
amount decimal(18,2) NULL, note nvarchar(max) NULL)"""


def fill_orders(simulator: Simulator, first: int, count: int) -> None:
    for start in range(first, first + count, 500):
        rows = ", ".join(f"({i}, N'cust {i % 7} é', {i}.25, N'note {i}')"
                         for i in range(start, min(start + 500, first + count)))
        simulator.run(f"INSERT dbo.orders (id, customer, amount, note) VALUES {rows}")


def change_orders(simulator: Simulator) -> None:
    for sql in (
        "UPDATE dbo.orders SET amount = amount + 1 WHERE id BETWEEN 10 AND 40",
        "DELETE dbo.orders WHERE id IN (3, 5, 700)",
        "UPDATE dbo.orders SET id = 9001 WHERE id = 9",
        # A shift of a run of keys: SQL Server logs it as deletes and inserts.
        "UPDATE dbo.orders SET id = id + 1 WHERE id BETWEEN 1490 AND 1500",
        "BEGIN TRAN; DELETE dbo.orders WHERE id = 20; "
        "INSERT dbo.orders (id, customer) VALUES (20, N'again'); COMMIT",
        "UPDATE dbo.orders SET note = N'longer than before' WHERE id = 30",
        "UPDATE dbo.orders SET customer = NULL WHERE id = 31",
    ):
        simulator.run(sql)
    simulator.capture()


COLUMNS = ["id", "customer", "amount", "note"]


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
    tables = {"dbo_orders": COLUMNS, "dbo_lines": ["order_id", "line_no", "sku"]}
    for capture_instance, columns in tables.items():
        chain = Chain(where, "chunks", capture_instance)
        chain.stream(bootstrap=True, snapshot="chunked")
        if capture_instance == "dbo_orders":
            change_orders(simulator)
        status = where.package.do("backfill", options=chain.options, target=chain.bronze,
                                  app_id=f"{capture_instance}-v1", facts=chain.facts,
                                  chunk_rows=100)
        tally.equal(f"{capture_instance}: backfill done", status["done"], True)
        tally.equal(f"{capture_instance}: more than one chunk", status["chunks_total"] > 1, True)
        chain.stream(bootstrap=True, snapshot="chunked")
        chain.apply()
        compare_silver(tally, f"{capture_instance} in chunks", chain, "chunks",
                       capture_instance.replace("_", ".", 1), columns)
        told = chain.reconcile()
        tally.equal(f"{capture_instance}: reconcile finds no difference", told["mismatch"], 0)


def taking_turns(tally: Tally, where: Where) -> None:
    """One checkpoint and one bronze, continued by each in turn, against a run of ours alone."""
    simulator = where.simulator
    simulator.create("turns", ORDERS)
    fill_orders(simulator, 1, 40)
    simulator.enable("orders")
    chain = Chain(where, "turns", "dbo_orders")
    alone = Pipeline(where.program, where.folder / "turns" / "alone", simulator, "turns",
                     "dbo_orders", "dbo_orders-v1")
    ours = chain.ours
    chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
    for turn, theirs in enumerate((False, True, True, False, False, True, False)):
        fill_orders(simulator, 1000 * (turn + 1), 3)
        simulator.run(f"UPDATE dbo.orders SET amount = amount + {turn} WHERE id < 4")
        simulator.run(f"DELETE dbo.orders WHERE id = {10 + turn}")
        if turn:
            simulator.capture()
        if theirs:
            chain.stream(bootstrap=True)
        else:
            must_run(ours)
        must_run(alone)
    for table, what in ((ours.bronze, "bronze"), (ours.facts, "facts")):
        tally.equal(f"in turns: {what} exists", (table / "_delta_log").is_dir(), True)
    chain.bronze, chain.ours = ours.bronze, alone
    compare_bronze(tally, "in turns", chain, ["id"])
    read = deltalake.DeltaTable(os.fspath(ours.facts)).to_pyarrow_table().to_pylist()
    batches = sorted(row["batch_id"] for row in read if row["event"] is None)
    tally.equal("in turns: one facts row per batch", len(set(batches)), len(batches))
    tally.equal("in turns: batches are numbered without a gap", batches,
                list(range(batches[0], batches[0] + len(batches))))


# Who does what: opens the snapshot, plans it with wave 0, reads wave 1, reads the rest; o is
# ours, p the package.
TURNS = ("opop", "poop", "oppo", "ppoo", "oopp")


def chunks_in_turns(tally: Tally, where: Where) -> None:
    """One chunked snapshot, opened, planned and read by both in turns, while changes come; the
    package's silver and its checks of the chunks are the judge."""
    simulator = where.simulator
    simulator.create("chunkturns", ORDERS, """CREATE TABLE dbo.lines (order_id int NOT NULL,
line_no smallint NOT NULL, sku varchar(20) NULL, PRIMARY KEY (order_id, line_no))""")
    for order in range(1, 60):
        rows = ", ".join(f"({order}, {line}, 's{order}-{line}')" for line in range(order % 5 + 1))
        simulator.run(f"INSERT dbo.lines (order_id, line_no, sku) VALUES {rows}")
    fill_orders(simulator, 1, 300)
    simulator.enable("orders")
    simulator.enable("lines")
    tables = {"dbo_orders": (COLUMNS, 40), "dbo_lines": (["order_id", "line_no", "sku"], 25)}
    for number, turns in enumerate(TURNS):
        capture_instance = list(tables)[number % 2]
        columns, chunk_rows = tables[capture_instance]
        chain = Chain(where, "chunkturns", capture_instance)
        app_id = f"{capture_instance}-{turns}"
        ours = Pipeline(where.program, where.folder / "chunkturns" / turns, simulator, "chunkturns",
                        capture_instance, app_id, snapshot="chunked", numPartitions="2")
        chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
        chain.silver, chain.control = ours.folder / "silver", ours.folder / "control"
        one_wave = (("--max-waves", "1"), {"max_waves": 1})

        def stream(who: str) -> None:
            if who == "o":
                must_run(ours)
            else:
                where.package.do("stream", options=chain.options, target=ours.bronze,
                                 app_id=app_id, checkpoint=ours.checkpoint, facts=ours.facts,
                                 bootstrap=True, snapshot="chunked")

        stream(turns[0])
        for who, (arguments, keywords) in zip(turns[1:], (one_wave, one_wave, ((), {}))):
            if who == "o":
                code, output = ours.run("backfill", ("--chunk-rows", str(chunk_rows),
                                                     "--target-wave-seconds", "0", *arguments))
                if code not in (0, 75):
                    tally.equal(f"{turns}: our backfill", f"{code}: {output}", 0)
            else:
                where.package.do("backfill", options=chain.options, target=ours.bronze,
                                 app_id=app_id, facts=ours.facts, chunk_rows=chunk_rows,
                                 target_wave_seconds=0, **keywords)
            simulator.run(f"UPDATE dbo.orders SET amount = amount + 1 WHERE id % 50 = {number}")
            simulator.run(f"UPDATE dbo.lines SET sku = 'new' WHERE order_id = {10 + number}")
            simulator.capture()
            stream("o" if who == "p" else "p")
        facts = deltalake.DeltaTable(os.fspath(ours.facts)).to_pyarrow_table().to_pylist()
        for event in ("snapshot_open", "snapshot_plan", "bootstrap"):
            tally.equal(f"{turns}: one {event}", sum(row["event"] == event for row in facts), 1)
        chunks = [json.loads(row["detail"]) for row in facts if row["event"] == "snapshot_chunk"]
        tally.equal(f"{turns}: chunks, each once", sorted(chunk["chunk"] for chunk in chunks),
                    list(range(len(chunks))))
        tally.equal(f"{turns}: several waves", len({chunk["wave"] for chunk in chunks}) > 2, True)
        chain.apply()
        compare_silver(tally, turns, chain, "chunkturns", capture_instance.replace("_", ".", 1),
                       columns)
        told = chain.reconcile()
        tally.equal(f"{turns}: reconcile finds no difference", told["mismatch"], 0)
        tally.equal(f"{turns}: nor in the chunks", told["failures"], {})


def losses_in_turns(tally: Tally, where: Where) -> None:
    """Losses that one recovers and the other goes on from, in both modes."""
    simulator = where.simulator
    simulator.create("losses", ORDERS)
    fill_orders(simulator, 1, 60)
    simulator.enable("orders")
    for mode in ("full", "chunked"):
        chain = Chain(where, "losses", "dbo_orders")
        app_id = f"orders-{mode}"
        more = {"bootstrap": True, "snapshot": mode, "on_data_loss": "resnapshot",
                "resnapshot_interval_days": 0}
        ours = Pipeline(where.program, where.folder / "losses" / mode, simulator, "losses",
                        "dbo_orders", app_id, numPartitions="2", **more)
        chain.silver, chain.control = ours.folder / "silver", ours.folder / "control"
        chain.bronze, chain.facts = ours.bronze, ours.facts

        def turn(who: str) -> None:
            if who == "o":
                must_run(ours)
                if mode == "chunked":
                    ours.run("backfill", ("--chunk-rows", "20"))
                must_run(ours)
                return
            for _ in range(2):
                where.package.do("stream", options=chain.options, target=ours.bronze,
                                 app_id=app_id, checkpoint=ours.checkpoint, facts=ours.facts, **more)
                if mode == "chunked":
                    where.package.do("backfill", options=chain.options, target=ours.bronze,
                                     app_id=app_id, facts=ours.facts, chunk_rows=20)

        turn("o")
        for number, who in enumerate("popo"):
            simulator.run(f"UPDATE dbo.orders SET amount = {number} WHERE id < 5")
            simulator.capture()
            simulator.run(f"DELETE dbo.orders WHERE id = {40 + number}")
            simulator.capture()
            simulator.run("EXEC sim.cleanup @retention = 0")
            simulator.run(f"UPDATE dbo.orders SET amount = {number} WHERE id = 7")
            simulator.capture()
            turn(who)
            turn("o" if who == "p" else "p")
        state = json.loads((ours.checkpoint / "_mssql_cdc_generation.json").read_text())
        tally.equal(f"{mode}: generation", state["generation"], 4)
        facts = deltalake.DeltaTable(os.fspath(ours.facts)).to_pyarrow_table().to_pylist()
        tally.equal(f"{mode}: resnapshots", sorted(row["app_id"] for row in facts
                                                   if row["event"] == "resnapshot"),
                    [f"{app_id}.g{n}" for n in range(1, 5)])
        chain.apply()
        compare_silver(tally, f"losses, {mode}", chain, "losses", "dbo.orders", COLUMNS)


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
         chunks_in_turns, losses_in_turns, silver_like_theirs]
# `./dev existing` alone runs these: minutes each.
DEAR = [chunks_in_turns, losses_in_turns]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--write-tables", type=pathlib.Path, required=True,
                        help="the program that writes a table of each kind")
    parser.add_argument("--python", type=pathlib.Path, required=True,
                        help="of the environment that has the package and pyspark")
    parser.add_argument("--jars", type=pathlib.Path, required=True, help="folder of Delta's jars")
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS])
    parser.add_argument("--quick", action="store_true", help="the parts of ./dev test")
    parser.add_argument("--log", type=pathlib.Path, default=None)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-existing-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
        package = Package(args.python, jars, args.log or folder / "worker.log",
                          HERE / "package_worker.py")
        where = Where(args.program, args.write_tables, folder, simulator, package)
        try:
            tally.equal("the package's version", package.do("version"), "0.8.0")
            for part in PARTS:
                if args.only not in (None, part.__name__) or (args.quick and part in DEAR):
                    continue
                try:
                    part(tally, where)
                except PackageFailed as failure:
                    tally.failed += 1
                    print(f"FAILED {part.__name__}: {failure}")
            package.stop()
        finally:
            package.process.kill()
            simulator.stop()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
