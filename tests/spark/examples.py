"""The reference pages' examples, as users write them.

Only names of tables and paths are this test's: {root} is a folder, {db} a schema of the catalog.
Each sets `result`. Names given: spark, options, secret.
"""

SMALLEST_BOOTSTRAP = """
from mssql_cdc import stream

query = stream(spark, options).to_delta(
    "{db}.orders",
    app_id="orders-v1",
    checkpoint="{root}/checkpoints/orders",
    facts_table="{db}.ingestion_facts",
    trigger={{"availableNow": True}},
    bootstrap=True,
)
query.awaitTermination()
result = spark.table("{db}.orders").count()
"""

# options.txt, its first example: without a trigger, so it is stopped here.
ALWAYS_ON = """
from mssql_cdc import stream

options = {{**options, "maxCommitsPerBatch": "500"}}
query = stream(spark, options).to_delta(
    "{db}.orders",
    app_id="orders-v1",
    checkpoint="{root}/checkpoints/orders",
    facts_table="{db}.ingestion_facts",
)
query.processAllAvailable()
query.stop()
result = spark.table("{db}.orders").count()
"""

SOURCE_OPTIONS = """
from mssql_cdc import SourceOptions, stream

typed: SourceOptions = {{
    "connectionString": options["connectionString"],
    "user": options["user"],
    "password": secret("mssql-password"),
    "captureInstance": "dbo_orders",
}}
query = stream(spark, typed).to_delta(
    "{root}/typed", app_id="typed-v1", checkpoint="{root}/checkpoints/typed",
    trigger={{"availableNow": True}})
query.awaitTermination()
result = query.exception() is None
"""

SNAPSHOT_ALONE = """
from mssql_cdc import stream

offset = stream(spark, options).snapshot("{db}.alone")
query = stream(spark, {{**options, "startingLsn": offset["lsn"]}}).to_delta(
    "{db}.alone",
    app_id="alone-v1",
    checkpoint="{root}/checkpoints/alone",
    facts_table="{db}.alone_facts",
    trigger={{"availableNow": True}},
)
query.awaitTermination()
found = stream(spark, options).snapshot("{db}.alone")
again = stream(spark, options).snapshot("{db}.alone", resnapshot=True)
events = [row.event for row in spark.table("{db}.alone_facts").where("event IS NOT NULL").collect()]
result = [found == offset, again["lsn"] >= offset["lsn"], sorted(offset), events,
          spark.table("{db}.alone").where("_operation = 0").count()]
"""

SNAPSHOT_ELSEWHERE = """
from mssql_cdc import register

register(spark)
rows = spark.read.format("mssql_cdc_snapshot").options(**options).load()
rows.write.format("parquet").save("{root}/snapshots/orders")
read = spark.read.parquet("{root}/snapshots/orders")
result = [read.count(), read.select("_start_lsn").distinct().count(), read.columns]
"""

BY_HAND = """
from mssql_cdc import register
from mssql_cdc.sink import delta_sink

register(spark)
metrics = "{root}/metrics"
changes = (spark.readStream.format("mssql_cdc").options(**options)
           .option("metricsPath", metrics).option("startinglsn", "earliest").load())
query = (changes.writeStream
         .foreachBatch(delta_sink("{root}/hand", "hand-v1", "{root}/hand_facts", metrics_path=metrics))
         .option("checkpointLocation", "{root}/checkpoints/hand")
         .trigger(availableNow=True).start())
query.awaitTermination()
facts = spark.read.format("delta").load("{root}/hand_facts").collect()
result = [sum(row.rows for row in facts), all(row.end_lsn for row in facts),
          spark.read.format("delta").load("{root}/hand").count()]
"""

MANY = """
from mssql_cdc import await_all, start_many, stop_all

queries = start_many(
    spark, options, ["dbo_orders", "dbo_lines"],
    target="{root}/many/{{ci}}", app_id="{{ci}}-v1", checkpoint="{root}/checkpoints/{{ci}}",
    facts_table="{root}/many_facts", trigger={{"availableNow": True}}, bootstrap=True)
failures = await_all(queries)
stop_all(queries)
rows = spark.read.format("delta").load("{root}/many_facts").where("event = 'bootstrap'").collect()
result = [sorted(queries), failures, sorted(row.app_id for row in rows)]
"""

REFUSED = """
import mssql_cdc
from mssql_cdc import stream

def refused(work):
    try:
        work()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]

def to_delta(**more):
    return lambda: stream(spark, options).to_delta(
        "{root}/refused", "refused-v1", "{root}/checkpoints/refused", **more)

def with_option(name, value):
    return lambda: stream(spark, {{**options, name: value}}).to_delta(
        "{root}/refused", "refused-v1", "{root}/checkpoints/refused")

result = {{
    "bootstrap and startingLsn": refused(lambda: stream(
        spark, {{**options, "startingLsn": "latest"}}).to_delta(
        "{root}/refused", "refused-v1", "{root}/checkpoints/refused", bootstrap=True)),
    "on_data_loss": refused(to_delta(on_data_loss="never")),
    "snapshot": refused(to_delta(snapshot="half")),
    "chunked without facts": refused(to_delta(snapshot="chunked")),
    "failOnDataLoss": refused(with_option("failOnDataLoss", "ture")),
    "maxCommitsPerBatch": refused(with_option("maxCommitsPerBatch", "0")),
    "user twice": refused(with_option(
        "connectionString", options["connectionString"] + ";UID=again")),
    "password": refused(with_option("password", "Wrong-canary-3")),
    "tokenProvider": refused(lambda: stream(
        spark, {{"connectionString": options["connectionString"], "captureInstance": "dbo_orders",
                "tokenProvider": "no_such_module:token"}}).to_delta(
        "{root}/refused", "refused-v1", "{root}/checkpoints/refused")),
    "instance": refused(with_option("captureInstance", "dbo_ordres")),
    "chunk_rows": refused(lambda: stream(spark, options).backfill(
        "{root}/refused", app_id="refused-v1", facts_table="{root}/refused_facts", chunk_rows=0)),
    "isolation": refused(lambda: stream(spark, options).backfill(
        "{root}/refused", app_id="refused-v1", facts_table="{root}/refused_facts",
        isolation="readUncommitted")),
    "resnapshot without facts": refused(to_delta(on_data_loss="resnapshot")),
    "resnapshot and failOnDataLoss": refused(lambda: stream(
        spark, {{**options, "failOnDataLoss": "false"}}).to_delta(
        "{root}/refused", "refused-v1", "{root}/checkpoints/refused",
        facts_table="{root}/refused_facts", on_data_loss="resnapshot")),
    "seed without app_id": refused(lambda: stream(spark, options).seed(
        "{root}/refused", spark.range(1), "0x01", facts_table="{root}/refused_facts")),
    "apply_changes without keys": refused(lambda: mssql_cdc.apply_changes(
        spark, "{root}/a", "{root}/b", control_table="{root}/c", capture_instance="x")),
    "apply_changes without an instance": refused(lambda: mssql_cdc.apply_changes(
        spark, "{root}/a", "{root}/b", control_table="{root}/c", keys=["id"])),
    "granularity": refused(lambda: mssql_cdc.apply_changes(
        spark, "{root}/a", "{root}/b", control_table="{root}/c", capture_instance="x",
        keys=["id"], granularity="week")),
    "sample": refused(lambda: mssql_cdc.reconcile(
        spark, options, "{root}/a", bronze="{root}/b", control_table="{root}/c", sample=2)),
}}
"""

REFUSED_AS = {
    "bootstrap and startingLsn": "ValueError",
    "on_data_loss": "ValueError",
    "snapshot": "ValueError",
    "chunked without facts": "ValueError",
    "failOnDataLoss": "ValueError",
    "maxCommitsPerBatch": "ValueError",
    "user twice": "ValueError",
    "password": "ConnectionError",
    "tokenProvider": "ValueError",
    "instance": "ValueError",
    "chunk_rows": "ValueError",
    "isolation": "ValueError",
    "resnapshot without facts": "ValueError",
    "resnapshot and failOnDataLoss": "ValueError",
    "seed without app_id": "ValueError",
    "apply_changes without keys": "ValueError",
    "apply_changes without an instance": "ValueError",
    "granularity": "ValueError",
    "sample": "ValueError",
}

DATA_LOSS = """
from mssql_cdc import is_data_loss, is_schema_changed, stream

query = stream(spark, {{**options, "startingLsn": "0x00000000000000000001"}}).to_delta(
    "{root}/lost", "lost-v1", "{root}/checkpoints/lost", trigger={{"availableNow": True}})
try:
    query.awaitTermination()
    raised = None
except Exception as error:
    raised = error
result = [raised is not None, is_data_loss(raised), is_schema_changed(raised),
          "mssql_cdc.client.DataLossError" in str(raised)]
"""

CHUNKED = """
import time

from mssql_cdc import stream

orders = stream(spark, options)
query = orders.to_delta(
    "{db}.chunked",
    app_id="chunked-v1",
    checkpoint="{root}/checkpoints/chunked",
    facts_table="{db}.chunked_facts",  # required: its rows hold the snapshot's state
    trigger={{"availableNow": True}},
    bootstrap=True,
    snapshot="chunked",
)
query.awaitTermination()
states = []
grace = time.monotonic() + 3600  # the stream's first run may not have opened it yet
while True:
    status = orders.backfill(
        "{db}.chunked",
        app_id="chunked-v1",
        facts_table="{db}.chunked_facts",
        chunk_rows=20,
        max_seconds=3600,  # one call's budget; the next call goes on
        max_waves=1,
        target_wave_seconds=0,
    )
    state = status["state"]
    states.append(state)
    if state == "done":
        break
    if state == "no_snapshot":
        raise RuntimeError(status["reason"])
facts = spark.table("{db}.chunked_facts").where("event IS NOT NULL").collect()
result = [states[-1], set(states[:-1]), status["chunks_done"] == status["chunks_total"],
          status["done"], status["paused"],
          spark.table("{db}.chunked").where("_chunk IS NOT NULL").count(),
          sorted(set(row.event for row in facts)),
          spark.table("{db}.chunked_snapshot_plans").count() > 0]
result[1] = sorted(result[1])
"""

# Tables without a unique index: what chunks are cut on is named.
CHUNKED_BY_NAME = """
from mssql_cdc import stream

options = {{**options, "captureInstance": "dbo_log", "snapshotKeys": '["created_at"]'}}
log = stream(spark, options)  # for to_delta and for backfill() alike
query = log.to_delta(
    "{root}/log", app_id="log-v1", checkpoint="{root}/checkpoints/log",
    facts_table="{root}/log_facts", trigger={{"availableNow": True}}, bootstrap=True,
    snapshot="chunked")
query.awaitTermination()
status = log.backfill("{root}/log", app_id="log-v1", facts_table="{root}/log_facts", chunk_rows=7)
rows = spark.read.format("delta").load("{root}/log").where("_operation = 0")
result = [status["state"], status["chunks_total"] > 2, rows.count(),
          rows.select("created_at", "text").distinct().count()]
"""

# Part of the table by hand: rows end with their chunk's number.
BY_CHUNKS = """
from mssql_cdc import register

register(spark)
rows = (spark.read.format("mssql_cdc_snapshot").options(**options)
        .option("snapshotChunks", "[[0, null, 11], [1, 11, 21], [5, 141, null]]").load())
rows.write.format("parquet").save("{root}/by_chunks")
read = spark.read.parquet("{root}/by_chunks")
result = [read.columns[-1], sorted([row["_chunk"], row["count"], row["min(id)"]] for row in
          read.groupBy("_chunk").agg({{"*": "count", "id": "min"}})
          .withColumnRenamed("count(1)", "count").collect())]
"""

NO_SNAPSHOT = """
from mssql_cdc import stream

status = stream(spark, options).backfill(
    "{root}/nothing", app_id="nothing-v1", facts_table="{root}/nothing_facts")
result = [status["state"], status["paused"], status["done"], status["snapshot"], bool(status["reason"])]
"""

SEED = """
from datetime import datetime, timezone

from mssql_cdc import stream

copied = spark.table("{db}.copy")
orders = stream(spark, options)
seeded = orders.seed(
    "{db}.seeded",
    copied,
    as_of=as_of,  # an LSN noted before the copy began
    app_id="seeded-v1",
    facts_table="{db}.seeded_facts",
)
query = orders.to_delta(
    "{db}.seeded",
    app_id="seeded-v1",
    checkpoint="{root}/checkpoints/seeded",
    facts_table="{db}.seeded_facts",
    trigger={{"availableNow": True}},
    bootstrap=True,  # finds the seed: never reads the table
)
query.awaitTermination()
again = orders.seed("{db}.seeded", copied, as_of=as_of, app_id="seeded-v1",
                    facts_table="{db}.seeded_facts")

def refused(work):
    try:
        work()
    except Exception as error:
        return type(error).__name__
    return "nothing"

rows = spark.table("{db}.seeded")
facts = spark.table("{db}.seeded_facts").where("event = 'bootstrap'").collect()
result = [
    again == seeded, rows.where("_operation = 0").count(), rows.where("_operation <> 0").count(),
    [(row.event, row.rows, row.min_lsn == seeded["lsn"]) for row in facts],
    rows.where("_operation = 0").select("_snapshot", "_start_lsn").distinct().count(),
    refused(lambda: orders.seed("{root}/s1", copied.drop("note"), as_of)),
    orders.seed("{root}/s1", copied.drop("note"), as_of, allow_missing_columns=True)["lsn"]
    == seeded["lsn"],
    spark.read.format("delta").load("{root}/s1").where("note IS NOT NULL").count(),
    refused(lambda: orders.seed("{root}/s2", copied, datetime(2001, 1, 1, tzinfo=timezone.utc))),
    refused(lambda: orders.seed("{root}/s2", copied.selectExpr(
        "id * 10000000000 AS id", "customer", "amount", "note"), as_of)),
]
"""

SILVER = """
from mssql_cdc import apply_changes, finalization, reconcile, stream

query = stream(spark, options).to_delta(
    "{db}.orders", app_id="orders-v1", checkpoint="{root}/checkpoints/orders",
    facts_table="{db}.ingestion_facts", bootstrap=True, trigger={{"availableNow": True}})
listener = finalization.track(spark, query, "{db}.control", "{db}.orders", granularity="minute")
query.awaitTermination()
listener.join(timeout=60)
end = finalization.end_offset_from_progress(query.lastProgress)
moved = finalization.advance(spark, "{db}.control", "{db}.orders", end, granularity="minute")
applied = apply_changes(
    spark, "{db}.orders", "{db}.silver_orders", control_table="{db}.control",
    facts_table="{db}.ingestion_facts", options=options, granularity="minute")
fresh = finalization.freshness(spark, "{db}.control", "{db}.orders")
compared = reconcile(
    spark, options, "{db}.silver_orders", bronze="{db}.orders", control_table="{db}.control",
    facts_table="{db}.ingestion_facts", sample=1.0, report_table="{db}.report", seed=7)
until = finalization.finalized_until(spark, "{db}.control", "{db}.orders")
result = [
    applied["bronze_found"], applied["applied_lsn"] is not None,
    sorted([row.id, row.customer, str(row.amount)] for row in spark.table("{db}.silver_orders").collect()),
    [compared["mismatch"], compared["failures"], compared["match"] > 0, compared["hashed"] > 0],
    [compared["report"].count(), spark.table("{db}.report").where(
        "run_id = '" + compared["run_id"] + "'").count()],
    listener.last_error is None, until == moved, until == fresh["finalized_until"],
    until == finalization.candidate(end, granularity="minute"),
    finalization.is_final(spark, "{db}.control", "{db}.orders", until), fresh["age_seconds"] > 0,
]
"""

WAITING = """
from mssql_cdc import ReconcileResult, reconcile

told = reconcile(
    spark, options, "{db}.silver_orders", bronze="{db}.orders", control_table="{db}.control",
    facts_table="{db}.ingestion_facts", sample=1.0, seed=7, capture_wait=seconds)
result = [told["failures"].get("RECORD_DIFF", 0), set(told) == set(ReconcileResult.__annotations__)]
"""
