"""The one-call pipeline: `stream(spark, options).to_delta(...)`."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from mssql_cdc import _core, _errors, seeds, tables
from mssql_cdc._metrics import below, is_uri
from mssql_cdc._sessions import find, log, texts, tokens, warn, without
from mssql_cdc._spark import is_connect
from mssql_cdc.client import SchemaChangedError
from mssql_cdc.sink import Sink
from mssql_cdc.source import NOTES_OPTION, RESERVED_COLUMNS, register, warn_unknown
from mssql_cdc.types import BackfillStatus, Isolation, Offset, OnDataLoss, SnapshotMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
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

        A bootstrap, and a snapshot after a loss, happen inside this call, before the query starts.
        """
        _check_modes(on_data_loss, snapshot, facts_table)
        if bootstrap and find(self.options, "startingLsn"):
            raise ValueError("bootstrap=True starts at its snapshot: leave out option startingLsn")
        if snapshot_on_switch and is_uri(checkpoint) and not find(self.options, "metricsPath"):
            raise ValueError("snapshot_on_switch=True with a checkpoint by URI needs option "
                             "metricsPath: planner and sink talk through it")
        if snapshot_on_switch and is_connect(self.spark):
            raise ValueError("snapshot_on_switch=True is not for a session of Spark Connect: the "
                             "sink runs on its server, without this process's sessions")
        place = {"app_id": app_id, "on_data_loss": on_data_loss, "snapshot": snapshot,
                 "snapshot_on_switch": "true" if snapshot_on_switch else "false"}
        if not is_uri(checkpoint):
            place["checkpoint"] = os.path.abspath(checkpoint)
        driver = self._driver(target, facts_table, place, bootstrap, resnapshot_interval_days)
        sink_id, directory, initial = driver.prepare(self._snapshot_writer(target))
        warn(driver.take_warnings())
        if snapshot == "chunked":
            tables.adopt_plans(self.spark, target)
        options = self.options
        if initial is not None:
            options = {**without(options, "startingLsn"), "startingLsn": json.loads(initial)["lsn"]}
        live = directory or checkpoint
        metrics = _metrics_path(options, sink_id, live,
                                facts_table is not None or snapshot_on_switch)
        options = without(options, "metricsPath")
        if metrics:
            options["metricsPath"] = metrics
        if directory:
            options[NOTES_OPTION] = directory
        sink = Sink(driver, place, sink_id, metrics)
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
        driver = self._driver(target, facts_table, {"app_id": app_id or "snapshot"}, False)
        offset, _ = driver.snapshot(self._snapshot_writer(target), resnapshot)
        warn(driver.take_warnings())
        return json.loads(offset)

    def seed(self, target: str, df: DataFrame, as_of: datetime.datetime | str, *,
             app_id: str | None = None, facts_table: str | None = None,
             allow_missing_columns: bool = False, reseed: bool = False) -> Offset:
        """A copy of the table in the place of a snapshot: every commit up to `as_of` is in it."""
        if facts_table is not None and not app_id:
            raise ValueError("seed(facts_table=...) needs the stream's app_id")
        driver = self._driver(target, facts_table, {"app_id": app_id or "seed"}, False)
        columns = [(name, type_) for name, type_, _ in driver.target_definition()[0]
                   if name not in RESERVED_COLUMNS]
        copy = seeds.Copy(df, columns, find(self.options, "captureInstance") or "")

        def write(metadata: str, app_id: str | None, version: int) -> int:
            rows = copy.rows(json.loads(metadata), "_command_id" in tables.columns_of(
                self.spark, target))
            tables.append(rows, target, userMetadata=metadata, mergeSchema=True)
            return self._rows_of_commit(target, metadata)

        try:
            offset, rows = driver.seed(write, copy.ddl, seeds.as_of_text(as_of),
                                       allow_missing_columns, reseed)
        except SchemaChangedError as error:
            raise _errors.as_value_error(error) from None
        warn(driver.take_warnings())
        log.info("seed of %s at %s: %s", target, offset,
                 "it was there" if rows is None else f"{rows} rows")
        return json.loads(offset)

    def backfill(
        self,
        target: str,
        *,
        app_id: str,
        facts_table: str,
        chunk_rows: int | None = None,
        max_waves: int | None = None,
        max_seconds: float | None = None,
        target_wave_seconds: float | None = None,
        min_headroom_hours: float | None = None,
        isolation: Isolation | None = None,
    ) -> BackfillStatus:
        """Reads the open chunked snapshot, wave by wave, beside the stream; call it until done.

        It runs in this process, over numPartitions connections of its own.
        """
        settings = _limits(chunk_rows=chunk_rows, max_waves=max_waves, max_seconds=max_seconds,
                           target_wave_seconds=target_wave_seconds,
                           min_headroom_hours=min_headroom_hours, isolation=isolation)
        options = _resolved(self.options)
        if not (tables.exists(self.spark, target) and tables.exists(self.spark, facts_table)):
            return _status({"snapshot": None, "chunks_done": 0, "chunks_total": None,
                            "state": "no_snapshot",
                            "reason": f"{target} or {facts_table} is not there yet"})
        places = {"app_id": app_id, "bronze": target,
                  "bronze_location": tables.location(self.spark, target),
                  "facts_table": facts_table,
                  "facts_location": tables.location(self.spark, facts_table)}
        told, warnings = _core.backfill(options, tokens(options), places, settings)
        warn(warnings)
        tables.adopt_plans(self.spark, target)
        return _status(told)

    def _driver(self, target: str, facts_table: str | None, place: dict[str, str],
                bootstrap: bool, interval_days: float = 7.0) -> _core.StreamDriver:
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
        return _core.StreamDriver.open(options, tokens(options), place, bootstrap, interval_days)

    def _snapshot_writer(self, target: str) -> Any:
        """Reads the table on the executors and appends it in one commit; gives its rows."""

        def write(metadata: str, app_id: str | None, version: int) -> int:
            from pyspark.sql import functions as f

            stamp = json.loads(metadata)["lsn"]
            log.info("snapshot of %s begins at %s", find(self.options, "captureInstance"), stamp)
            options = {**without(self.options, "snapshotLsn", "startingLsn"), "snapshotLsn": stamp}
            rows = (self.spark.read.format("mssql_cdc_snapshot").options(**options).load()
                    .withColumn("_batch_id", f.lit(None).cast("int"))
                    .withColumn("_snapshot", f.col("_start_lsn"))
                    .withColumn("_chunk", f.lit(None).cast("int")))
            txn = {} if app_id is None else {"txnAppId": app_id, "txnVersion": version}
            tables.append(rows, target, userMetadata=metadata, mergeSchema=True, **txn)
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


def _check_modes(on_data_loss: str, snapshot: str, facts_table: str | None) -> None:
    """Refuses values that nobody knows."""
    for name, value, known in (("on_data_loss", on_data_loss, get_args(OnDataLoss)),
                               ("snapshot", snapshot, get_args(SnapshotMode))):
        if value not in known:
            raise ValueError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    if snapshot == "chunked" and facts_table is None:
        raise ValueError('snapshot="chunked" needs facts_table: its rows hold the snapshot\'s state')
    if on_data_loss == "resnapshot" and facts_table is None:
        raise ValueError('on_data_loss="resnapshot" needs facts_table')


# What a backfill's limits may be at least.
_LEAST = {"chunk_rows": 1, "max_waves": 1, "max_seconds": 0, "target_wave_seconds": 0,
          "min_headroom_hours": 0}


def _limits(isolation: str | None, **limits: float | None) -> dict[str, Any]:
    """Checked before anything is read."""
    for name, value in limits.items():
        if value is not None and not value >= _LEAST[name]:
            raise ValueError(f"{name} is at least {_LEAST[name]}, not {value!r}")
    if isolation is not None and isolation.lower() not in ("snapshot", "readcommitted"):
        raise ValueError(f"isolation is 'snapshot' or 'readCommitted', not {isolation!r}")
    return {**limits, "isolation": isolation}


def _status(told: dict[str, Any]) -> BackfillStatus:
    state = told["state"]
    return {"snapshot": told["snapshot"], "chunks_done": told["chunks_done"],
            "chunks_total": told["chunks_total"], "done": state == "done",
            "paused": state in ("waiting_headroom", "waiting_metrics", "no_snapshot"),
            "state": state, "reason": told["reason"]}


def _resolved(options: Mapping[str, str]) -> dict[str, str]:
    """For the extension on the driver: it plans no ranges there."""
    return without(options, NOTES_OPTION, "metricsPath")


def _metrics_path(options: Mapping[str, str], sink_id: str, checkpoint: str,
                  wanted: bool) -> str | None:
    """Where planner and tasks leave what the sink folds into the facts."""
    given = find(options, "metricsPath")
    if given:
        return below(given, sink_id)
    if given is None and wanted and not is_uri(checkpoint):
        return below(checkpoint, "_mssql_cdc_metrics")
    return None


__all__ = ["CdcStream", "stream"]
