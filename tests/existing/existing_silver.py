"""The package's `apply_changes` and `mssql-cdc apply` on one bronze: two silvers, row by row equal.

Bronze is written by the binary, so that Spark is asked for little but what is compared. Small
histories: a snapshot that overlaps with changes, a key swap, a bulk shift of keys, a delete and an
insert of one key in one transaction, a composite key, large values that an update leaves alone,
chunks applied one wave at a time. Then rows of both silvers are altered, `reconcile --repair` puts
ours right, and the package applies the repaired bronze to its own, and to a new one.
"""

from __future__ import annotations

import os
import pathlib

import deltalake
import pyarrow as pa
from deltalake import QueryBuilder
from check_values import must_run
from package_worker import canonical_text
from pipeline import Pipeline

ITEMS = """CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, customer nvarchar(40) NULL,
amount decimal(18,4) NULL, placed_at datetime2(6) NULL, note nvarchar(max) NULL,
picture varbinary(max) NULL)"""
LINES = """CREATE TABLE dbo.lines (order_id int NOT NULL, sku varchar(20) NOT NULL, price float NULL,
CONSTRAINT pk_lines PRIMARY KEY (order_id, sku))"""

# What a transaction makes of keys; {t} is the table.
KEY_CHANGES = (
    "UPDATE dbo.{t} SET id = CASE id WHEN 11 THEN 12 ELSE 11 END WHERE id IN (11, 12)",
    "UPDATE dbo.{t} SET id = id + 1 WHERE id BETWEEN 40 AND 60",
    "UPDATE dbo.{t} SET id = 900 WHERE id = 9",
    "BEGIN TRAN; DELETE dbo.{t} WHERE id = 20; INSERT dbo.{t} (id, customer) VALUES (20, N'again'); "
    "COMMIT",
    "BEGIN TRAN; INSERT dbo.{t} (id) VALUES (77); UPDATE dbo.{t} SET id = 78 WHERE id = 77; "
    "DELETE dbo.{t} WHERE id = 78; COMMIT",
    "BEGIN TRAN; DELETE dbo.{t} WHERE id = 21; INSERT dbo.{t} (id) VALUES (21); "
    "DELETE dbo.{t} WHERE id = 21; COMMIT",
)
VALUE_CHANGES = (
    # The large values stay as they are: CDC records NULL for them in the image before.
    "UPDATE dbo.{t} SET amount = amount + 1 WHERE id BETWEEN 1 AND 6",
    "UPDATE dbo.{t} SET note = N'longer than before', picture = NULL WHERE id = 5",
    "UPDATE dbo.{t} SET customer = NULL WHERE id = 6",
    "DELETE dbo.{t} WHERE id IN (3, 50)",
)
LINE_CHANGES = (
    "UPDATE dbo.lines SET price = 7.5 WHERE order_id = 2",
    "UPDATE dbo.lines SET sku = 'moved' WHERE order_id = 3 AND sku = 'a'",
    "UPDATE dbo.lines SET order_id = order_id + 1 WHERE sku = 'b'",
    "UPDATE dbo.lines SET sku = CASE sku WHEN 'a' THEN 'b' ELSE 'a' END WHERE order_id = 5",
    "BEGIN TRAN; DELETE dbo.lines WHERE order_id = 4; INSERT dbo.lines VALUES (4, 'a', 0.5); COMMIT",
)


def fill(simulator, name: str, first: int, count: int) -> None:
    values = ", ".join(f"({i}, N'customer {i % 7} é', {i}.0625, '2026-01-02 03:04:05.123456', "
                       f"N'note {i}', 0x{i:04X})" for i in range(first, first + count))
    simulator.run(f"INSERT dbo.{name} VALUES {values}")


class Pair:
    """A stream of `table` and two silvers of its bronze: one the package's, one ours."""

    def __init__(self, tally, where, name: str, table: str | None = None,
                 database: str = "pairs", **options) -> None:
        self.tally, self.where, self.name = tally, where, name
        self.table, self.database = table or name, database
        self.folder = folder = where.folder / database / name
        self.ours, self.theirs = folder / "ours", folder / "theirs"
        self.pipeline = Pipeline(where.program, folder, where.simulator, database,
                                 f"dbo_{self.table}", f"{name}-v1", numPartitions="2", **options)
        # A file of its own, so that no run applies anything at a moment of its choosing.
        self.applying = Pipeline(where.program, folder / "apply", where.simulator, database,
                                 f"dbo_{self.table}", f"{name}-v1", target=str(self.pipeline.bronze),
                                 facts_table=str(self.pipeline.facts), silver=str(self.ours),
                                 checkpoint=str(self.pipeline.checkpoint),
                                 control_table=str(folder / "control"))
        self.options = {
            "connectionString": f"Server={where.simulator.host},{where.simulator.port};"
            f"Database={database};Encrypt=yes;TrustServerCertificate=yes",
            "user": where.simulator.user, "password": where.simulator.password,
            "captureInstance": f"dbo_{self.table}", "numPartitions": "2",
        }

    def run(self, what: str, *changes: str) -> None:
        for sql in changes:
            self.where.simulator.run(sql.format(t=self.table))
        self.where.simulator.capture()
        must_run(self.pipeline)

    def apply_theirs(self, silver: pathlib.Path | None = None) -> None:
        silver = silver or self.theirs
        self.where.package.do("apply", bronze=self.pipeline.bronze, silver=silver,
                              control=f"{silver}_control", facts=self.pipeline.facts,
                              options=self.options)

    def apply_both(self, what: str) -> None:
        self.apply_theirs()
        code, output = self.applying.run("apply")
        self.tally.equal(f"{self.name}, {what}: mssql-cdc apply ({output[-300:]})", code, 0)
        self.compare(what, self.theirs)

    def compare(self, what: str, theirs: pathlib.Path) -> None:
        tally, what = self.tally, f"{self.name}, {what}"
        (their_names, their_rows), (our_names, our_rows) = silver(theirs), silver(self.ours)
        tally.equal(f"{what}: columns of silver", their_names, our_names)
        tally.equal(f"{what}: rows of silver", len(their_rows), len(our_rows))
        tally.equal(f"{what}: there are rows", bool(our_rows), True)
        for their_row, our_row in zip(their_rows, our_rows):
            tally.equal(f"{what}: a row of silver", their_row, our_row)

    def compare_source(self, what: str, columns: list[str]) -> None:
        """As far as CDC tells: no large values."""
        connection = self.where.simulator.connect(self.database)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(columns)} FROM dbo.{self.table}")
            source = sorted([canonical_text(value) for value in row] for row in cursor.fetchall())
        connection.close()
        names, rows = silver(self.ours)
        chosen = sorted([row[names.index(name)] for name in columns] for row in rows)
        self.tally.equal(f"{self.name}, {what}: silver is the source", chosen, source)


def silver(path: pathlib.Path) -> tuple[list[str], list[list]]:
    """Names and rows, sorted; through delta-rs's engine, which knows deletion vectors."""
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    read = pa.table(engine.execute("SELECT * FROM t").read_all())
    rows = [[canonical_text(value) for value in row.values()] for row in read.to_pylist()]
    return read.column_names, sorted(rows, key=lambda row: [(v is not None, v) for v in row])


def alter(path: pathlib.Path) -> None:
    """One row missing, one too many, two changed."""
    table = deltalake.DeltaTable(os.fspath(path))
    engine = QueryBuilder().register("t", table)
    rows = {row["id"]: row for row in pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()}
    rows.pop(13)
    rows[7777] = rows[14] | {"id": 7777}
    rows[15]["customer"] = "somebody"
    rows[16]["amount"] = None
    deltalake.write_deltalake(table, pa.Table.from_pylist(
        list(rows.values()), schema=pa.schema(table.schema().to_arrow())), mode="overwrite")


def in_chunks(pair: Pair) -> None:
    """Waves beside changes, applied as they come."""
    pair.run("open")
    for number, changes in enumerate((VALUE_CHANGES, KEY_CHANGES, ())):
        code, output = pair.pipeline.run("backfill", (
            "--chunk-rows", "25", "--target-wave-seconds", "0",
            *(("--max-waves", "1") if number < 2 else ())))
        pair.tally.equal(f"backfill ({output[-300:]})", code in (0, 75), True)
        pair.run("between waves", *changes)
        pair.apply_both(f"wave {number}")
    pair.compare_source("all chunks", ["id", "customer", "amount"])


def with_overlap(pair: Pair) -> None:
    """The snapshot has rows whose changes come after it."""
    pair.run("changes after the snapshot", *VALUE_CHANGES[:1])
    pair.apply_both("the snapshot and changes in it")
    pair.run("keys", *KEY_CHANGES, *VALUE_CHANGES[1:])
    pair.apply_both("changed keys")
    pair.compare_source("changed keys", ["id", "customer", "amount"])


def repaired(pair: Pair) -> None:
    simulator, tally = pair.where.simulator, pair.tally
    alter(pair.ours)
    alter(pair.theirs)
    simulator.run("INSERT dbo.other (id) VALUES (1)")
    pair.run("up to the newest commit")
    code, output = pair.applying.run("reconcile", ("--sample", "1", "--repair"))
    tally.equal(f"reconcile --repair ({output[-600:]})", code, 0)
    pair.apply_theirs()
    pair.compare("repaired bronze", pair.theirs)
    fresh = pair.theirs.parent / "fresh"
    pair.apply_theirs(fresh)
    pair.compare("repaired bronze, from the beginning", fresh)
    pair.compare_source("repaired bronze", ["id", "customer", "amount", "note"])


def silver_of_composite_keys(tally, where) -> None:
    simulator = where.simulator
    simulator.create("pairedkeys", LINES)
    for order in range(1, 6):
        simulator.run(f"INSERT dbo.lines VALUES ({order}, 'a', 1.25), ({order}, 'b', NULL)")
    simulator.enable("lines")
    lines = Pair(tally, where, "lines", database="pairedkeys")
    must_run(lines.pipeline)
    lines.run("changes", *LINE_CHANGES)
    lines.apply_both("a composite key")
    lines.compare_source("a composite key", ["order_id", "sku", "price"])


def silver_like_theirs(tally, where) -> None:
    simulator = where.simulator
    simulator.create("pairs", ITEMS.format(name="whole"), ITEMS.format(name="chunked"),
                     "CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)")
    fill(simulator, "whole", 1, 60)
    fill(simulator, "chunked", 1, 60)
    for name in ("whole", "chunked", "other"):
        simulator.enable(name)
    in_chunks(Pair(tally, where, "chunked", snapshot="chunked"))
    whole = Pair(tally, where, "whole")
    # Committed and not captured: the snapshot has them, and so have the changes after it.
    for sql in VALUE_CHANGES:
        simulator.run(sql.format(t="whole"))
    must_run(whole.pipeline)
    with_overlap(whole)
    repaired(whole)
