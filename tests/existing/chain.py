"""One capture instance that the existing package and the binary read into tables of their own."""

from __future__ import annotations

import json
import os
import pathlib

import deltalake
import pyarrow as pa
from check_values import must_run
from deltalake import QueryBuilder
from pipeline import Pipeline
from simulator import Simulator
from tally import Tally


class Chain:
    """One capture instance read by both into tables of their own."""

    def __init__(self, where: Where, database: str, capture_instance: str, **options) -> None:
        self.where = where
        self.capture_instance = capture_instance
        folder = where.folder / database / capture_instance
        self.ours = Pipeline(where.program, folder / "ours", where.simulator, database,
                             capture_instance, f"{capture_instance}-v1", **options)
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
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(chain.silver)))
    silver = pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()
    tally.equal(f"{what}: silver is the source",
                sorted(tuple(row[name] for name in columns) for row in silver), source)


def without_stream(value):
    """A JSON detail without the `app_id` that only our plans have."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    return {name: part for name, part in json.loads(value).items() if name != "app_id"}


def compare_chunks(tally: Tally, what: str, chain: Chain) -> None:
    """Plans and facts of the chunks, without times; ours name the stream, too."""
    for name, columns in (("facts", ("event", "rows", "min_lsn", "max_lsn", "detail")),
                          ("bronze_snapshot_plans", ("snapshot", "event", "detail"))):
        told = []
        for folder in (chain.facts.parent, chain.ours.folder):
            rows = deltalake.DeltaTable(os.fspath(folder / name)).to_pyarrow_table().to_pylist()
            told.append(sorted(str([without_stream(row[column]) for column in columns])
                               for row in rows if row["event"]))
        tally.equal(f"{what}: {name}", *told)


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
