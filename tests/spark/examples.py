"""The reference pages' examples that need no chunked snapshot and no seed, as users write them.

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
    "chunked": refused(to_delta(snapshot="chunked", facts_table="{root}/refused_facts")),
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
    "backfill": refused(lambda: stream(spark, options).backfill(
        "{root}/refused", app_id="refused-v1", facts_table="{root}/refused_facts")),
    "seed": refused(lambda: stream(spark, options).seed("{root}/refused", None, "0x00")),
    "apply_changes": refused(lambda: mssql_cdc.apply_changes(spark, "a", "b", control_table="c")),
    "reconcile": refused(lambda: mssql_cdc.reconcile(spark, options, "a", bronze="b",
                                                     control_table="c")),
}}
"""

REFUSED_AS = {
    "bootstrap and startingLsn": "ValueError",
    "on_data_loss": "ValueError",
    "snapshot": "ValueError",
    "chunked without facts": "ValueError",
    "chunked": "NotImplementedError",
    "failOnDataLoss": "ValueError",
    "maxCommitsPerBatch": "ValueError",
    "user twice": "ValueError",
    "password": "ConnectionError",
    "tokenProvider": "ValueError",
    "instance": "ValueError",
    "backfill": "NotImplementedError",
    "seed": "NotImplementedError",
    "apply_changes": "NotImplementedError",
    "reconcile": "NotImplementedError",
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
