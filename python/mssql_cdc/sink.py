"""Writes micro-batches into bronze and their facts, exactly once: a foreachBatch function.

A batch is read once. A small one, planned as a single range, is collected as Arrow and committed by
the extension together with its counts; any other is written by Spark, on its executors. What a task
read it tells in a file of the metrics directory; without one, rows are counted in the target.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mssql_cdc import _core, tables
from mssql_cdc._metrics import Metrics
from mssql_cdc._sessions import log
from mssql_cdc._spark import is_connect
from mssql_cdc.source import RESERVED_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A batch of so many changes is Spark's to write.
SMALL_BATCH_ROWS = 100_000

# What of a stream's place a sink alone needs.
_PLACE = ("target", "target_location", "facts_table", "facts_location")


def _rows_of(batch: DataFrame, batch_id: int) -> Any:
    """The batch as one Arrow table in the target's shape."""
    import pyarrow as pa

    rows = batch.toArrow()
    fields = [pa.field(field.name, _plain(field.type)) for field in rows.schema]
    rows = rows.cast(pa.schema(fields))
    return rows.append_column(pa.field("_batch_id", pa.int32()),
                              pa.array([batch_id] * rows.num_rows, pa.int32()))


def _plain(type_: Any) -> Any:
    """The Arrow type the extension knows for one that Spark may choose."""
    import pyarrow as pa

    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    return type_


def _has_no_partitions(batch: DataFrame) -> bool:
    """Whether a batch is empty without reading it; sessions of Spark Connect do not say."""
    try:
        return batch.rdd.getNumPartitions() == 0
    except Exception:
        return False


def _let_go(batch: DataFrame) -> None:
    """Leaves it to the server of Spark Connect to forget a batch that is done, as it does.

    Spark 4.2 asks it to in a finalizer, which can wait for the answer for ever (SPARK-58846).
    """
    plan = getattr(batch, "_plan", None)
    if getattr(plan, "_relation_id", None) is not None:
        plan._relation_id = None


class Sink:
    """One query's sink. Calls come from Spark, one batch after the other."""

    def __init__(self, driver: _core.StreamDriver, place: dict[str, str], sink_id: str,
                 metrics_path: str | None) -> None:
        self._driver: _core.StreamDriver | None = driver
        self.place = {name: place[name] for name in _PLACE if name in place} | {"app_id": sink_id}
        self.target, self.target_location = place["target"], place["target_location"]
        self.sink_id = sink_id
        self.metrics = Metrics(metrics_path)
        self.counts_wanted = "facts_table" in place
        self.told_of_metrics = False
        self.core_writes = True

    def __getstate__(self) -> dict[str, Any]:
        """A server of Spark Connect calls the sink in another process, which opens its own driver."""
        return {**self.__dict__, "_driver": None}

    @property
    def driver(self) -> _core.StreamDriver:
        if self._driver is None:
            self._driver = _core.StreamDriver.open(None, None, self.place, False)
        return self._driver

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self._write(batch, batch_id)
        finally:
            if is_connect(batch.sparkSession):
                _let_go(batch)

    def _write(self, batch: DataFrame, batch_id: int) -> None:
        started_at_us, begun = time.time_ns() // 1000, time.monotonic()
        summary, _, _ = self.metrics.collect()
        work = self.driver.look(batch_id, summary)
        counts = None
        if work == "everything":
            self._append(batch, batch_id, summary)
        duration_ms = round((time.monotonic() - begun) * 1000)
        if work != "nothing":
            summary, reads, _ = self.metrics.collect()
            if work == "facts" or not self._is_complete(summary, reads):
                counts = self._count(batch, batch_id) if self.counts_wanted else None
                self._tell_of_metrics(counts)
            if self.counts_wanted:
                self.driver.record(batch_id, started_at_us, duration_ms if work == "everything" else 0,
                                   counts, summary, reads)
        self.driver.finish_batch(batch_id, summary)
        _, _, names = self.metrics.collect()
        self.metrics.remove(names)

    def _append(self, batch: DataFrame, batch_id: int, summary: str | None) -> None:
        planned = json.loads(summary) if summary else None
        if (not planned["ranges"] if planned is not None else _has_no_partitions(batch)):
            return
        is_small = (planned is not None and len(planned["ranges"]) == 1
                    and planned["row_count"] < SMALL_BATCH_ROWS)
        if not is_small or not self.core_writes or not tables.is_local(self.target_location):
            self._append_by_spark(batch, batch_id)
            return
        rows = _rows_of(batch, batch_id)
        if not rows.num_rows:
            return
        _, reads, _ = self.metrics.collect()
        try:
            self.driver.append(batch_id, rows.to_reader(),
                               reads if self._is_complete(summary, reads) else None)
        except RuntimeError as error:
            if getattr(error, "name", None) != "LakeTableUnsupported":
                raise
            self.core_writes = False  # Delta's own writer has the table's features.
            self._append_by_spark(batch, batch_id)

    def _append_by_spark(self, batch: DataFrame, batch_id: int) -> None:
        from pyspark.sql import functions as f

        rows = (batch.withColumn("_batch_id", f.lit(batch_id).cast("int"))
                .withColumn("_snapshot", f.lit(None).cast("string"))
                .withColumn("_chunk", f.lit(None).cast("int")))
        tables.append(rows, self.target, txnAppId=self.sink_id, txnVersion=batch_id,
                      userMetadata=self.driver.metadata(batch_id), mergeSchema=True)

    @staticmethod
    def _is_complete(summary: str | None, reads: list[str]) -> bool:
        return summary is not None and len(json.loads(summary)["ranges"]) == len(reads)

    def _count(self, batch: DataFrame, batch_id: int) -> dict[str, Any]:
        """What the batch wrote: as its commit says, else as the target's rows do."""
        counts = self.driver.counts_in_log(batch_id)
        if counts is not None:
            return counts
        return counted(batch.sparkSession, self.target, batch_id, self.sink_id)

    def _tell_of_metrics(self, counts: dict[str, Any] | None) -> None:
        if self.told_of_metrics or self.metrics.folder is None or not counts or not counts["rows"]:
            return
        self.told_of_metrics = True
        log.warning("the executors' metrics files do not reach the driver: read times, retention "
                    "and lag stay NULL in the facts")


def counted(spark: Any, target: str, batch_id: int, sink_id: str) -> dict[str, Any]:
    """Counts of a batch's rows in the target."""
    from pyspark.sql import functions as f

    def of(operation: int) -> Any:
        return f.coalesce(f.sum(f.when(f.col("_operation") == operation, 1).otherwise(0)), f.lit(0))

    rows = spark.table(tables.table_ref(target)).where(f.col("_batch_id") == batch_id)
    micros = "cast(unix_micros(cast({}(_commit_ts) as timestamp)) as bigint)"
    row = rows.agg(
        f.count("*").alias("rows"), of(1).alias("deletes"), of(2).alias("inserts"),
        of(4).alias("updates"), f.min("_start_lsn").alias("min_lsn"),
        f.max("_start_lsn").alias("max_lsn"),
        f.expr(micros.format("min")).alias("min_commit_us"),
        f.expr(micros.format("max")).alias("max_commit_us")).collect()[0]
    return row.asDict()


def delta_sink(target: str, app_id: str, facts_table: str | None = None, *,
               metrics_path: str | None = None) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch that appends each batch to `target` and records its facts.

    `app_id` must be stable for the life of one checkpoint. `metrics_path` is the directory of the
    source's option metricsPath, used by this stream only.
    """
    made: list[Sink] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        if not made:
            made.append(_sink_of(batch, target, app_id, facts_table, metrics_path))
        made[0](batch, batch_id)

    return write


def _sink_of(batch: DataFrame, target: str, app_id: str, facts_table: str | None,
             metrics_path: str | None) -> Sink:
    """Makes the tables ready for a sink whose query somebody else set up."""
    spark = batch.sparkSession
    place = {"target": target, "app_id": app_id}
    ensure_facts(spark, facts_table, place)
    if not tables.exists(spark, target):
        create_target(spark, target, batch)
    place["target_location"] = tables.location(spark, target)
    driver = _core.StreamDriver.open(None, None, place, False)
    return Sink(driver, place, app_id, metrics_path)


def create_target(spark: Any, target: str, batch: DataFrame) -> None:
    """Creates bronze with a batch's columns."""
    captured = ", ".join("`" + field.name.replace("`", "``") + f"` {field.dataType.simpleString()}"
                         for field in batch.schema if field.name not in RESERVED_COLUMNS)
    definition = _core.bronze_definition(captured, "_command_id" in batch.columns)
    tables.create(spark, tables.table_ref(target), definition)


def ensure_facts(spark: Any, facts_table: str | None, place: dict[str, str]) -> None:
    """Makes the facts table ready and enters it into `place`."""
    if facts_table is None:
        return
    place["facts_table"] = facts_table
    if not tables.exists(spark, facts_table):
        tables.create(spark, tables.table_ref(facts_table), _core.facts_definition())
    place["facts_location"] = tables.location(spark, facts_table)


__all__ = ["delta_sink"]
