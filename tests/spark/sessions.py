"""Other kinds of sessions: Spark Connect, and a Spark before admission control."""

from __future__ import annotations

import socket

import existing_package as existing
from existing_package import COLUMNS, Chain, Tally, compare_bronze, compare_silver
from line_worker import PackageFailed
from spark_where import Where, facts_of

# What a user of an older Spark writes: no Delta sink of ours, one batch of all there is.
PLAIN = """
import pyspark
from mssql_cdc import HAS_ADMISSION_CONTROL, register

register(spark)
changes = (spark.readStream.format("mssql_cdc").options(**options)
           .option("startingLsn", "earliest").option("maxCommitsPerBatch", "1").load())
query = (changes.writeStream.format("parquet").option("path", "{root}/rows")
         .option("checkpointLocation", "{root}/checkpoint").trigger(availableNow=True).start())
query.awaitTermination()
rows = spark.read.parquet("{root}/rows")
whole = spark.read.format("mssql_cdc_snapshot").options(**options).load()
result = [pyspark.__version__, HAS_ADMISSION_CONTROL, rows.count(),
          rows.select("_start_lsn").distinct().count(), whole.count()]
"""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def connect(tally: Tally, where: Where) -> None:
    """The same calls in a session of Spark Connect, whose server runs the sink elsewhere."""
    simulator = where.simulator
    simulator.create("connects", existing.ORDERS)
    existing.fill_orders(simulator, 1, 30)
    simulator.enable("orders")
    chain = Chain(where, "connects", "dbo_orders")
    where.revive(MSSQL_CDC_TEST_CONNECT=str(free_port()))
    chain.both()
    existing.change_orders(simulator)
    chain.both()
    compare_bronze(tally, "connect", chain, ["id"])
    counts = [[(row["rows"], row["event"], row["end_lsn"]) for row in facts_of(facts)
               if row["rows"] != 0] for facts in (chain.facts, chain.ours.facts)]
    tally.equal("connect: facts", *counts)
    chain.apply()
    compare_silver(tally, "connect", chain, "connects", "dbo.orders", COLUMNS)
    try:
        chain.stream(snapshot_on_switch=True)
        told = "nothing"
    except PackageFailed as failure:
        told = str(failure)
    tally.equal("connect: snapshot_on_switch is refused", "ValueError: snapshot_on_switch" in told,
                True)
    where.revive()


def older_spark(tally: Tally, where: Where) -> None:
    """Spark 4.1: plain readers, which say what they cannot do."""
    simulator = where.simulator
    simulator.create("older", existing.ORDERS)
    simulator.enable("orders")
    for number in range(3):
        existing.fill_orders(simulator, 1 + 10 * number, 4)
    simulator.capture()
    options = Chain(where, "older", "dbo_orders").options
    where.revive(python=where.args.older, MSSQL_CDC_TEST_PLAIN="yes")
    root = where.folder / "older-spark"
    version, has_limits, rows, commits, whole = where.package.do(
        "run", code=PLAIN.format(root=root), options=options)
    tally.equal("older Spark: version", version.split(".")[:2], ["4", "1"])
    tally.equal("older Spark: no admission control", has_limits, False)
    tally.equal("older Spark: rows", (rows, commits > 1, whole), (12, True, 12))
    told = where.package.log.read_text()
    tally.equal("older Spark: maxCommitsPerBatch is told of",
                "maxCommitsPerBatch is ignored" in told, True)
    where.revive()


PARTS = [connect, older_spark]
