"""The one-call pipeline: `stream(spark, options).to_delta(...)`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from mssql_cdc import _core, tables
from mssql_cdc._errors import not_there_yet
from mssql_cdc._metrics import below, is_uri
from mssql_cdc._sessions import find, log, texts, tokens, warn, without
from mssql_cdc.sink import Sink
from mssql_cdc.source import NOTES_OPTION, register, warn_unknown
from mssql_cdc.types import Offset, OnDataLoss, SnapshotMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def stream(spark: SparkSession, options: Mapping[str, str]) -> CdcStream:
    """The stream of one capture instance, ready for `to_delta`; registers the data sources."""
    given = texts(options)
    register(spark)
    warn_unknown(given)
    return CdcStream(spark, given)


class CdcStream:
    """What can be done with one capture instance. Made by `stream()`."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self.spark = spark
        self.options = dict(options)

    def to_delta(
        self,
        target: str,
        app_id: str,
        checkpoint: str,
        facts_table: str | None = None,
        *,
        trigger: Mapping[str, Any] | None = None,
        query_name: str | None = None,
        bootstrap: bool = False,
        on_data_loss: OnDataLoss = "fail",
        resnapshot_interval_days: float = 7.0,
        snapshot_on_switch: bool = False,
        snapshot: SnapshotMode = "full",
    ) -> StreamingQuery:
        """Starts the query that keeps `target` up to date, and returns it.

        A bootstrap happens inside this call, before the query starts.
        """
        _check_modes(on_data_loss, snapshot, snapshot_on_switch, facts_table)
        if bootstrap and find(self.options, "startingLsn"):
            raise ValueError("bootstrap=True starts at its snapshot: leave out option startingLsn")
        place = {"app_id": app_id}
        if not is_uri(checkpoint):
            place["checkpoint"] = os.path.abspath(checkpoint)
        driver = self._driver(target, facts_table, place, bootstrap)
        sink_id, directory, initial = driver.prepare(self._snapshot_writer(target))
        warn(driver.take_warnings())
        options = self.options
        if initial is not None:
            options = {**without(options, "startingLsn"), "startingLsn": json.loads(initial)["lsn"]}
        live = directory or checkpoint
        metrics = _metrics_path(options, sink_id, live, facts_table)
        options = without(options, "metricsPath")
        if metrics:
            options["metricsPath"] = metrics
        if directory:
            options[NOTES_OPTION] = directory
        sink = Sink(driver, target, place["target_location"], sink_id, metrics,
                    facts_table is not None)
        writer = (self.spark.readStream.format("mssql_cdc").options(**options).load()
                  .writeStream.foreachBatch(sink.__call__)
                  .option("checkpointLocation", live)
                  .queryName(query_name or sink_id))
        if trigger:
            writer = writer.trigger(**trigger)
        return writer.start()

    def snapshot(self, target: str, *, resnapshot: bool = False, app_id: str | None = None,
                 facts_table: str | None = None) -> Offset:
        """The whole table in `target`: the snapshot that is there, or a new one; its offset."""
        if facts_table is not None and not app_id:
            raise ValueError("snapshot(facts_table=...) needs the stream's app_id")
        place = {"app_id": app_id or "snapshot"}
        driver = self._driver(target, facts_table, place, False)
        offset = json.loads(driver.snapshot(self._snapshot_writer(target), resnapshot))
        warn(driver.take_warnings())
        return offset

    def backfill(self, target: str, *, app_id: str, facts_table: str, **limits: Any) -> Any:
        """Not there yet."""
        raise not_there_yet("backfill()")

    def seed(self, target: str, df: Any, as_of: Any, **settings: Any) -> Any:
        """Not there yet."""
        raise not_there_yet("seed()")

    def _driver(self, target: str, facts_table: str | None, place: dict[str, str],
                bootstrap: bool) -> _core.StreamDriver:
        """The extension's driver; tables that are names exist in the catalog from here on."""
        options = _resolved(self.options)
        if facts_table is not None:
            place["facts_table"] = facts_table
            if not tables.is_path(facts_table):
                tables.create(self.spark, facts_table, _core.facts_definition())
            place["facts_location"] = tables.location(self.spark, facts_table)
        place["target"] = target
        if not tables.is_path(target) and not tables.exists(self.spark, target):
            asked = _core.StreamDriver.open(options, tokens(options), {"target": target}, False)
            tables.create(self.spark, target, asked.target_definition())
        place["target_location"] = tables.location(self.spark, target)
        return _core.StreamDriver.open(options, tokens(options), place, bootstrap)

    def _snapshot_writer(self, target: str) -> Any:
        """Reads the table on the executors and appends it in one commit; gives its rows."""

        def write(metadata: str) -> int:
            from pyspark.sql import functions as f

            stamp = json.loads(metadata)["lsn"]
            log.info("snapshot of %s begins at %s", find(self.options, "captureInstance"), stamp)
            options = {**without(self.options, "snapshotLsn", "startingLsn"), "snapshotLsn": stamp}
            rows = (self.spark.read.format("mssql_cdc_snapshot").options(**options).load()
                    .withColumn("_batch_id", f.lit(None).cast("int"))
                    .withColumn("_snapshot", f.col("_start_lsn"))
                    .withColumn("_chunk", f.lit(None).cast("int")))
            tables.append(rows, target, userMetadata=metadata, mergeSchema=True)
            return self._rows_of_commit(target, metadata)

        return write

    def _rows_of_commit(self, target: str, metadata: str) -> int:
        """How many rows the newest commit with this metadata holds, by its own metrics."""
        history = (self.spark.sql(f"DESCRIBE HISTORY {tables.table_ref(target)}")
                   .where("userMetadata IS NOT NULL").orderBy("version", ascending=False)
                   .select("userMetadata", "operationMetrics").limit(20).collect())
        for row in history:
            if row["userMetadata"] == metadata:
                rows = int((row["operationMetrics"] or {}).get("numOutputRows", 0))
                log.info("snapshot done: %d rows", rows)
                return rows
        return 0  # An empty table: nothing was committed.


def _check_modes(on_data_loss: str, snapshot: str, snapshot_on_switch: bool,
                 facts_table: str | None) -> None:
    """Refuses values that nobody knows, and what is not there yet, by name."""
    for name, value, known in (("on_data_loss", on_data_loss, get_args(OnDataLoss)),
                               ("snapshot", snapshot, get_args(SnapshotMode))):
        if value not in known:
            raise ValueError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    if snapshot == "chunked" and facts_table is None:
        raise ValueError('snapshot="chunked" needs facts_table: its rows hold the snapshot\'s state')
    if on_data_loss == "resnapshot" and facts_table is None:
        raise ValueError('on_data_loss="resnapshot" needs facts_table')
    if on_data_loss == "resnapshot":
        raise not_there_yet('on_data_loss="resnapshot"')
    if snapshot == "chunked":
        raise not_there_yet('snapshot="chunked"')
    if snapshot_on_switch:
        raise not_there_yet("snapshot_on_switch=True")


def _resolved(options: Mapping[str, str]) -> dict[str, str]:
    """For the extension on the driver: it plans no ranges there."""
    return without(options, NOTES_OPTION, "metricsPath")


def _metrics_path(options: Mapping[str, str], sink_id: str, checkpoint: str,
                  facts_table: str | None) -> str | None:
    """Where planner and tasks leave what the sink folds into the facts."""
    given = find(options, "metricsPath")
    if given:
        return below(given, sink_id)
    if given is None and facts_table is not None and not is_uri(checkpoint):
        return below(checkpoint, "_mssql_cdc_metrics")
    return None


__all__ = ["CdcStream", "stream"]
