"""Turns and losses: what goes on from what, who may die when, who logs in."""

from __future__ import annotations

import os
import pathlib
import time

import deltalake
import existing_package as existing
from check_values import must_run
from existing_package import Chain, Tally, compare_bronze
from line_worker import Package, WorkerEnded
from pipeline import Pipeline
from simulator import Simulator
from spark_where import HERE, Where, bulk, facts_of


def one_checkpoint(where: Where, database: str) -> tuple[Chain, Pipeline]:
    """20 orders, tables and a checkpoint that both go on with, and a run of ours alone beside."""
    where.simulator.create(database, existing.ORDERS)
    existing.fill_orders(where.simulator, 1, 20)
    where.simulator.enable("orders")
    chain = Chain(where, database, "dbo_orders")
    ours = chain.ours
    chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
    alone = Pipeline(where.program, where.folder / database / "alone", where.simulator, database,
                     "dbo_orders", "dbo_orders-v1")
    return chain, alone


def pending_both_ways(tally: Tally, where: Where) -> None:
    """The switch with a batch begun and not done, from Spark to the local binary and back."""
    simulator = where.simulator
    chain, alone = one_checkpoint(where, "pending")
    ours = chain.ours
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
    chain, alone = one_checkpoint(where, "three")
    ours = chain.ours
    own = where.package
    peer = Package(where.args.peer, where.jars, where.folder / "peer.log",
                   HERE.parent / "existing" / "package_worker.py")
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
    return max((int(path.name) for path in log.iterdir() if path.name.isdigit()), default=-1)


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


def cluster(where: Where, **environment: str) -> None:
    """From here on executors are processes of their own, with the package on their path only."""
    site = os.fspath(where.args.site)
    where.package.process.kill()
    where.package.process.wait()
    where.package = where.worker(MSSQL_CDC_TEST_MASTER="local-cluster[2,1,2048]",
                                 MSSQL_CDC_TEST_SITE=site, **environment)


def two_workers(tally: Tally, where: Where) -> None:
    simulator = where.simulator
    simulator.create("cluster", existing.ORDERS)
    existing.fill_orders(simulator, 1, 500)
    simulator.enable("orders")
    chain = Chain(where, "cluster", "dbo_orders")
    cluster(where)
    chain.both()
    existing.change_orders(simulator)
    simulator.run(bulk(100_000, 12))
    simulator.capture()
    chain.both()
    compare_bronze(tally, "two workers", chain, ["id"])
    where.revive()


def lost_workers(tally: Tally, where: Where) -> None:
    """An executor killed while it reads, and a task that a second attempt overtakes."""
    simulator = where.simulator
    simulator.create("lost", existing.ORDERS)
    existing.fill_orders(simulator, 1, 50)
    simulator.enable("orders")
    chain = Chain(where, "lost", "dbo_orders")
    hook = where.folder / "hook"
    hook.mkdir()
    cluster(where, MSSQL_CDC_TEST_HOOK=os.fspath(hook), MSSQL_CDC_TEST_SPECULATION="true")
    chain.both()
    for number, what in enumerate(("kill", "hang")):
        simulator.run(bulk(1_000_000 * (number + 1), 12))
        simulator.capture()
        (hook / what).touch()
        chain.both()
        tally.equal(f"lost workers: a task did {what}", (hook / f"{what}-taken").exists(), True)
    compare_bronze(tally, "lost workers", chain, ["id"])
    counts = [[row["rows"] for row in facts_of(facts) if row["event"] is None and row["rows"]]
              for facts in (chain.facts, chain.ours.facts)]
    tally.equal("lost workers: the facts count each row once", *counts)
    where.revive()
