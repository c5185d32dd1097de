"""Snapshots in chunks, seeds, losses and silver on Spark."""

from __future__ import annotations

import os
import threading

import deltalake
import examples
import existing_package as existing
import model
import verify
from check_values import must_run
from crash import build_shim
from existing_package import COLUMNS, Chain, Tally, compare_bronze, compare_silver
from line_worker import WorkerEnded
from pipeline import Pipeline
from spark_where import Where, facts_of


def run_in(where: Where, name: str, code: str, **names):
    """A user's code with its tables in a schema of its own."""
    root = where.folder / f"{name}-spark"
    if not root.exists():
        root.mkdir()
        where.package.do("run", code=f"spark.sql('CREATE SCHEMA IF NOT EXISTS {name}_bronze LOCATION "
                         f"\"{root}/warehouse\"')")
    return where.package.do("run", code=code.format(root=root, db=f"{name}_bronze"), **names)


def newest_lsn(where: Where, database: str) -> str:
    connection = where.simulator.connect(database)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONVERT(varchar(22), sys.fn_cdc_get_max_lsn(), 1)")
        (lsn,) = cursor.fetchone()
    connection.close()
    return lsn


def chunked_examples(tally: Tally, where: Where) -> None:
    """The reference pages' chunked snapshots and seed."""
    simulator = where.simulator
    simulator.create("chunked", existing.ORDERS,
                     "CREATE TABLE dbo.log (created_at date NOT NULL, text varchar(20) NULL)")
    existing.fill_orders(simulator, 1, 150)
    rows = ", ".join(f"('2026-01-{1 + i % 28:02d}', 'line {i}')" for i in range(60))
    simulator.run(f"INSERT dbo.log VALUES {rows}")
    simulator.enable("orders")
    simulator.enable("log")
    options = Chain(where, "chunked", "dbo_orders").options
    tally.equal("no snapshot", run_in(where, "chunked", examples.NO_SNAPSHOT, options=options),
                ["no_snapshot", True, False, None, True])
    tally.equal("chunked", run_in(where, "chunked", examples.CHUNKED, options=options),
                ["done", ["running"], True, True, False, 150,
                 ["bootstrap", "snapshot_chunk", "snapshot_open", "snapshot_plan"], True])
    tally.equal("chunked by name", run_in(where, "chunked", examples.CHUNKED_BY_NAME, options=options),
                ["done", True, 60, 60])
    tally.equal("by chunks", run_in(where, "chunked", examples.BY_CHUNKS, options=options),
                ["_chunk", [[0, 10, 1], [1, 10, 11], [5, 10, 141]]])
    as_of = newest_lsn(where, "chunked")
    copy = ("from mssql_cdc import register\nregister(spark)\n"
            "spark.read.format('mssql_cdc_snapshot').options(**options).load().select(\n"
            "    'id', 'customer', 'amount', 'note', '_start_lsn').write.format('delta')"
            ".saveAsTable('{db}.copy')")
    run_in(where, "chunked", copy, options=options)
    simulator.run("UPDATE dbo.orders SET amount = 7 WHERE id <= 3")
    simulator.capture()
    tally.equal("seed", run_in(where, "chunked", examples.SEED, options=options, as_of=as_of),
                [True, 150, 6, [["bootstrap", 150, True]], 1, "ValueError", True, 0, "DataLossError",
                 "ArithmeticException"])


def silver_examples(tally: Tally, where: Where) -> None:
    """apply_changes, reconcile and finalization, first of a snapshot and then of changes."""
    simulator = where.simulator
    simulator.create("silver", existing.ORDERS)
    existing.fill_orders(simulator, 1, 40)
    simulator.enable("orders")
    options = Chain(where, "silver", "dbo_orders").options
    for number in range(2):
        told = run_in(where, "silver", examples.SILVER, options=options)
        connection = simulator.connect("silver")
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, customer, amount FROM dbo.orders")
            source = sorted([row[0], row[1], str(row[2])] for row in cursor.fetchall())
        connection.close()
        tally.equal(f"silver, run {number}: bronze is found", told[:2], [True, True])
        tally.equal(f"silver, run {number}: is the source", told[2], source)
        tally.equal(f"silver, run {number}: reconciled", told[3], [0, {}, True, True])
        tally.equal(f"silver, run {number}: the report is the table's", told[4][0], told[4][1])
        tally.equal(f"silver, run {number}: verdicts", told[5:], [True] * 6)
        simulator.run("UPDATE dbo.orders SET amount = amount + 1 WHERE id <= 5")
        simulator.run("DELETE dbo.orders WHERE id IN (7, 8)")
        simulator.run("UPDATE dbo.orders SET id = 900 WHERE id = 9")
        simulator.capture()
    simulator.run("UPDATE dbo.orders SET amount = amount + 1 WHERE id = 20")
    told = run_in(where, "silver", examples.WAITING, options=options, seconds=0)
    tally.equal("what capture has not read differs", told, [1, True])
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(0.05):
            simulator.capture()

    capture = threading.Thread(target=go_on)
    capture.start()
    told = run_in(where, "silver", examples.WAITING, options=options, seconds=60)
    done.set()
    capture.join()
    tally.equal("and does not once it has", told, [0, True])


def bootstrap_killed(tally: Tally, where: Where) -> None:
    """The driver dies around the snapshot's commit: one snapshot, and the stream goes on."""
    simulator = where.simulator
    simulator.create("killed", existing.ORDERS)
    existing.fill_orders(simulator, 1, 80)
    simulator.enable("orders")
    chain = Chain(where, "killed", "dbo_orders")
    for point in ("before the snapshot", "after the snapshot"):
        chain.bronze, chain.facts, chain.checkpoint = (
            where.folder / "killed" / point.replace(" ", "-") / name
            for name in ("bronze", "facts", "checkpoint"))
        try:
            where.package.do("die", where=point, options=chain.options, target=chain.bronze,
                             app_id="dbo_orders-v1", checkpoint=chain.checkpoint,
                             facts=chain.facts, bootstrap=True)
            tally.equal(f"died {point}", True, False)
        except WorkerEnded:
            pass
        where.revive()
        chain.stream(bootstrap=True)
        must_run(chain.ours)
        compare_bronze(tally, f"killed {point}", chain, ["id"])
        events = [row["event"] for row in facts_of(chain.facts) if row["event"]]
        tally.equal(f"killed {point}: one bootstrap", events.count("bootstrap"), 1)


def chunks_killed(tally: Tally, where: Where) -> None:
    """The calling process dies before each commit of a chunked snapshot's opening and waves."""
    simulator = where.simulator
    simulator.create("chunkskilled", model.CREATE)
    history = model.History(seed=5)
    for statement in history.load(16):
        simulator.run(statement)
    simulator.enable("items")
    shim = os.fspath(build_shim(where.folder))
    chain = Chain(where, "chunkskilled", "dbo_items")
    where.revive(LD_PRELOAD=shim)

    def wave() -> None:
        where.package.do("backfill", options=chain.options, target=chain.bronze,
                         app_id="dbo_items-v1", facts=chain.facts, chunk_rows=5,
                         target_wave_seconds=0)

    def opening() -> None:
        chain.stream(bootstrap=True, snapshot="chunked")

    for work, least in ((opening, 3), (wave, 4)):
        number, stopped = 0, True
        while stopped:
            number += 1
            ours = Pipeline(where.program, where.folder / "chunkskilled" / f"{work.__name__}-{number}",
                            simulator, "chunkskilled", "dbo_items", "dbo_items-v1", snapshot="chunked")
            chain.bronze, chain.facts, chain.checkpoint = ours.bronze, ours.facts, ours.checkpoint
            snapshot = dict(history.rows)
            if work is wave:
                must_run(ours)
            stopped = dies_before_link(where, number, work)
            if stopped:
                where.revive(LD_PRELOAD=shim)
                work()
            if work is opening:
                wave()
            for _ in range(2):
                simulator.run(history.transaction())
            simulator.capture()
            # The local binary goes on from there, at less cost than Spark.
            must_run(ours)
            try:
                verify.check_chunked(chain.bronze, chain.facts, snapshot, history.rows, "dbo_items-v1")
                tally.passed += 1
            except verify.Wrong as wrong:
                tally.equal(f"killed before commit {number} of {work.__name__}", str(wrong), "")
        tally.true(f"commits of {work.__name__} to be killed before", number > least, number - 1)
        print(f"chunks_killed: {number - 1} commits of {work.__name__}", flush=True)
    where.revive()


def dies_before_link(where: Where, number: int, work) -> bool:
    """Whether the worker ended, stopped before its `number`-th hard link while it works."""
    where.package.do("stop_at_link", number=number)
    try:
        work()
    except WorkerEnded:
        return True
    where.package.do("stop_at_link", number=0)
    return False


def switches(tally: Tally, where: Where) -> None:
    """A newer capture instance: a snapshot after the batch that reads it first, in both modes."""
    simulator = where.simulator
    for mode in ("full", "chunked"):
        database = f"switch{mode}"
        simulator.create(database, existing.ORDERS)
        existing.fill_orders(simulator, 1, 30)
        simulator.enable("orders")
        chain = Chain(where, database, "dbo_orders")
        more = {"bootstrap": True, "snapshot": mode, "snapshot_on_switch": True}

        def backfill() -> dict:
            return where.package.do("backfill", options=chain.options, target=chain.bronze,
                                    app_id="dbo_orders-v1", facts=chain.facts, chunk_rows=10)

        chain.stream(**more)
        if mode == "chunked":
            tally.equal("switch, chunked: backfill", backfill()["state"], "done")
        simulator.run("ALTER TABLE dbo.orders ADD extra int NULL")
        simulator.run("UPDATE dbo.orders SET extra = id")
        simulator.capture()
        simulator.run("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', "
                      "@role_name = NULL, @capture_instance = N'orders_2'")
        simulator.run("UPDATE dbo.orders SET note = N'after' WHERE id = 3")
        simulator.capture()
        chain.stream(**more)
        if mode == "chunked":
            tally.equal("switch, chunked: backfill after it", backfill()["state"], "done")
            chain.stream(**more)
        chain.apply()
        compare_silver(tally, f"switch, {mode}", chain, database, "dbo.orders", [*COLUMNS, "extra"])
        bronze = deltalake.DeltaTable(os.fspath(chain.bronze)).to_pyarrow_table().to_pylist()
        again = [row for row in bronze if row["_operation"] == 0 and row["extra"] is not None]
        tally.equal(f"switch, {mode}: rows read again have the new column", len(again), 30)


def chunks_beside_the_binary(tally: Tally, where: Where) -> None:
    existing.chunked_backfill(tally, where)
    existing.chunks_in_turns(tally, where)


def losses_beside_the_binary(tally: Tally, where: Where) -> None:
    existing.losses_in_turns(tally, where)


PARTS = [chunked_examples, silver_examples, bootstrap_killed, chunks_killed, switches,
         chunks_beside_the_binary, losses_beside_the_binary]
