"""Silver on Spark through the changes that a current state is easily wrong after.

A query runs all the time and apply_changes is called wherever it stands. The source is read after
each commit, so that silver can be compared with what the source was at the position that
apply_changes tells, also while the stream is behind.
"""

from __future__ import annotations

import concurrent.futures
import json
import os

import deltalake
from existing_package import Chain, Tally
from existing_silver import ITEMS, KEY_CHANGES, LINE_CHANGES, LINES, VALUE_CHANGES, fill, silver
from package_worker import canonical_text
from spark_where import Where

# A change and the operations it is told as (docs/cdc.md, "What each statement writes").
BY_KEY = tuple(zip(KEY_CHANGES, ("1122", "1" * 21 + "2" * 21, "12", "12", "1122", "112")))
DEFERRED = (
    ("UPDATE dbo.{t} SET id = id, amount = amount + 1 WHERE id BETWEEN 24 AND 27", "11112222"),
    ("MERGE dbo.{t} AS t USING (VALUES (28), (29)) AS s (id) ON t.id = s.id "
     "WHEN MATCHED THEN UPDATE SET customer = N'merged';", "1122"),
)
BY_VALUE = tuple(zip(VALUE_CHANGES, ("3" * 6 + "4" * 6, "34", "34", "11")))
AFTER_A_LOSS = (
    ("UPDATE dbo.{t} SET id = CASE id WHEN 14 THEN 15 ELSE 14 END WHERE id IN (14, 15)", "1122"),
    ("BEGIN TRAN; DELETE dbo.{t} WHERE id = 16; INSERT dbo.{t} (id, customer) "
     "VALUES (16, N'anew'); COMMIT", "12"),
)


class Watched:
    """A table, its rows at each LSN, and its stream with silver on Spark."""

    def __init__(self, tally: Tally, where: Where, database: str, table: str, columns: list[str],
                 mode: str) -> None:
        self.tally, self.where, self.table, self.columns = tally, where, table, columns
        self.mode, self.name = mode, f"silver of {table}, {mode}"
        self.chain = Chain(where, database, f"dbo_{table}")
        self.arguments = {"options": self.chain.options, "target": self.chain.bronze,
                          "app_id": f"{table}-v1", "facts": self.chain.facts}
        self.connection = where.simulator.connect(database)
        self.states: list[tuple[str, list[list]]] = []
        self.complete_from: str | None = None  # Silver is the source from this LSN on.
        self.compared: set[str] = set()

    def run(self, sql: str) -> list[tuple]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql.format(t=self.table))
            return cursor.fetchall() if cursor.description else []

    def note(self) -> str:
        """Captures, and keeps what the source is at the LSN that this ends with."""
        self.run("EXEC sys.sp_cdc_scan")
        ((lsn,),) = self.run("SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)")
        rows = self.run(f"SELECT {', '.join(self.columns)} FROM dbo.{self.table}")
        self.states.append((lsn, sorted_rows(rows)))
        return lsn

    def commit(self, sql: str) -> str:
        self.run(sql)
        return self.note()

    def start(self, **more) -> None:
        self.where.package.do("start", query=self.name, checkpoint=self.chain.checkpoint,
                              bootstrap=True, snapshot=self.mode, **self.arguments, **more)

    def catch_up(self) -> None:
        self.where.package.do("catch_up", query=self.name)

    def finish(self) -> None:
        self.where.package.do("finish", query=self.name)

    def wave(self) -> bool:
        """One wave of the chunked snapshot; whether it was the last."""
        return self.where.package.do("backfill", chunk_rows=5, target_wave_seconds=0, max_waves=1,
                                     **self.arguments)["done"]

    def check(self, what: str) -> None:
        """Applies, wherever the stream is, and compares."""
        applied = self.chain.apply()["applied_lsn"]
        names, rows = silver(self.chain.silver)
        found = sorted_rows([row[names.index(name)] for name in self.columns] for row in rows)
        what = f"{self.name}, {what}"
        if self.complete_from is None or applied < self.complete_from:
            images = {tuple(row) for _, state in self.states for row in state}
            strange = [row for row in found if tuple(row) not in images]
            self.tally.equal(f"{what}: rows that never were", strange, [])
            return
        source = [state for lsn, state in self.states if lsn <= applied][-1]
        self.tally.equal(f"{what}: silver is the source at {applied}", found, source)
        self.compared.add(applied)

    def is_complete(self) -> None:
        """All snapshots are read: from the LSN there is now, silver is the source."""
        self.complete_from = self.note()

    def through(self, changes: tuple[tuple[str, str], ...]) -> None:
        for sql, operations in changes:
            lsn = self.commit(sql)
            self.check(f"before {sql:.60}")
            self.catch_up()
            self.check(f"after {sql:.60}")
            told = deltalake.DeltaTable(os.fspath(self.chain.bronze)).to_pyarrow_table(
                columns=["_operation"], filters=[("_start_lsn", "=", lsn)])
            self.tally.equal(f"{self.name}: operations of {sql:.60}",
                             "".join(map(str, sorted(told["_operation"].to_pylist()))), operations)


def sorted_rows(rows) -> list[list]:
    texts = [[canonical_text(value) for value in row] for row in rows]
    return sorted(texts, key=lambda row: [(value is not None, value) for value in row])


def chunks_beside_writers(watched: Watched, changes: tuple[tuple[str, str], ...]) -> None:
    """All waves, each with changes committed, streamed and applied while it is read."""
    waiting, waves = [sql for sql, _ in changes], 0

    def write(some: list[str]) -> None:
        for sql in some:
            watched.commit(sql)

    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        done = False
        while not done:
            some, waiting = waiting[:4], waiting[4:]
            writing = pool.submit(write, some)
            done = watched.wave()
            writing.result()
            waves += 1
            watched.check(f"wave {waves}")
    write(waiting)
    watched.tally.equal(f"{watched.name}: several waves", waves > 2, True)


def lose(watched: Watched) -> None:
    """Changes that the stream has not read are cleaned up."""
    watched.finish()
    watched.commit("UPDATE dbo.{t} SET customer = N'lost' WHERE id < 5")
    watched.commit("DELETE dbo.{t} WHERE id IN (17, 18)")
    watched.run("EXEC sim.cleanup @retention = 0")
    watched.commit("UPDATE dbo.{t} SET customer = N'kept' WHERE id = 7")
    watched.complete_from = None
    watched.start(on_data_loss="resnapshot", resnapshot_interval_days=0)


def items(tally: Tally, where: Where, mode: str) -> None:
    database = f"cases{mode}"
    where.simulator.create(database, ITEMS.format(name="items"))
    fill(where.simulator, "items", 1, 60)
    where.simulator.enable("items")
    watched = Watched(tally, where, database, "items", ["id", "customer", "amount", "placed_at"], mode)
    watched.note()
    # Committed and not captured: the snapshot has it, and so have the changes after it.
    watched.run("UPDATE dbo.{t} SET amount = amount + 5 WHERE id BETWEEN 30 AND 35")
    watched.start()
    watched.note()
    changes = (*BY_KEY, *DEFERRED, *BY_VALUE)
    if mode == "chunked":
        chunks_beside_writers(watched, changes)
        changes = ()
    watched.is_complete()
    watched.catch_up()
    watched.check("the snapshot is complete")
    watched.through(changes)
    lose(watched)
    if mode == "chunked":
        chunks_beside_writers(watched, AFTER_A_LOSS)
    watched.is_complete()
    watched.catch_up()
    watched.check("a loss")
    if mode == "full":
        watched.through(AFTER_A_LOSS)
    watched.through((("UPDATE dbo.{t} SET amount = 0 WHERE id = 1", "34"),))
    watched.finish()
    state = json.loads((watched.chain.checkpoint / "_mssql_cdc_generation.json").read_text())
    tally.equal(f"{watched.name}: generation", state["generation"], 1)
    tally.true(f"{watched.name}: positions compared", len(watched.compared) > 2, watched.compared)


def composite_key(tally: Tally, where: Where) -> None:
    where.simulator.create("caseslines", LINES)
    for order in range(1, 6):
        where.simulator.run(f"INSERT dbo.lines VALUES ({order}, 'a', 1.25), ({order}, 'b', NULL)")
    where.simulator.enable("lines")
    watched = Watched(tally, where, "caseslines", "lines", ["order_id", "sku", "price"], "full")
    watched.start()
    watched.is_complete()
    watched.through(tuple(zip(LINE_CHANGES, ("3344", "12", "1" * 5 + "2" * 5, "1122", "112"))))
    watched.finish()


def silver_cases(tally: Tally, where: Where) -> None:
    """Key swaps, shifts, deferred updates, snapshots beside writers, a loss: silver is the source."""
    items(tally, where, "full")
    items(tally, where, "chunked")
    composite_key(tally, where)
