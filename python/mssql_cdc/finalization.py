"""Up to when a table is complete: `finalized_until`, kept in the control table.

Every period that ends at or before it is whole: no commit of the source can still arrive for it.
"""

from __future__ import annotations

import datetime
import json
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mssql_cdc import _core, tables
from mssql_cdc.silver import ensure_control, naive_utc
from mssql_cdc.types import Freshness, Granularity, Offset

try:
    from pyspark.sql.streaming.listener import StreamingQueryListener as _Listener
except ImportError:
    _Listener = object

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

log = logging.getLogger("mssql_cdc")

CONTROL_COLUMNS = [(name, type_, comment) for name, type_, comment in _core.control_definition()[0]]
CONTROL_COMMENT = _core.control_definition()[1]

_EPOCH = datetime.datetime(1970, 1, 1)
_WARNING_SECONDS = 600


def _micros(moment: datetime.datetime) -> int:
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def truncate(ts: datetime.datetime, granularity: Granularity = "hour") -> datetime.datetime:
    """The beginning of the minute, hour or day."""
    return naive_utc(_core.truncate(_micros(ts), granularity))


def candidate(end_offset: Mapping[str, str] | None, *,
              granularity: Granularity = "hour") -> datetime.datetime | None:
    """What a batch that ended there makes complete; None without a commit time."""
    text = end_offset.get("commit_ts") if end_offset else None
    return truncate(datetime.datetime.fromisoformat(text), granularity) if text else None


def end_offset_from_progress(progress: Any, *, source_index: int = 0) -> Offset | None:
    """Where a batch ended, by its progress: an object of Spark's, its JSON or a mapping."""
    if progress is None:
        return None
    told = progress if isinstance(progress, Mapping) else json.loads(
        progress if isinstance(progress, str) else progress.json)
    sources = told.get("sources") or []
    offset = sources[source_index].get("endOffset") if source_index < len(sources) else None
    return json.loads(offset) if isinstance(offset, str) else offset


def ensure_control_table(spark: SparkSession, control_table: str) -> None:
    """Makes the table, or brings it to this release's columns."""
    ensure_control(spark, control_table)


def advance(spark: SparkSession, control_table: str, table_name: str,
            end_offset: Mapping[str, str] | None, *,
            granularity: Granularity = "hour") -> datetime.datetime | None:
    """Moves the verdict as far as the offset allows, never back; the verdict after it."""
    ensure_control(spark, control_table)
    end = json.dumps(dict(end_offset)) if end_offset else None
    return naive_utc(_control(spark, control_table).advance(table_name, end, granularity))


def finalized_until(spark: SparkSession, control_table: str,
                    table_name: str) -> datetime.datetime | None:
    """The verdict; None before the first."""
    return naive_utc(_control(spark, control_table).read(table_name)["finalized_until_us"])


def is_final(spark: SparkSession, control_table: str, table_name: str,
             period_end: datetime.datetime) -> bool:
    """Whether every period that ends at `period_end` or before is complete."""
    until = _control(spark, control_table).read(table_name)["finalized_until_us"]
    return until is not None and _micros(period_end) <= until


def freshness(spark: SparkSession, control_table: str, table_name: str) -> Freshness:
    """How old the verdict is."""
    row = _control(spark, control_table).read(table_name)
    now = time.time()

    def age(micros: int | None) -> float | None:
        return None if micros is None else now - micros / 1e6

    return {"table_name": table_name, "finalized_until": naive_utc(row["finalized_until_us"]),
            "updated_at": naive_utc(row["updated_at_us"]),
            "age_seconds": age(row["finalized_until_us"]),
            "seconds_since_update": age(row["updated_at_us"]),
            "open_snapshot_lsn": row["open_snapshot_lsn"]}


def _control(spark: SparkSession, control_table: str) -> _core.Control:
    return _core.Control(tables.location(spark, control_table))


class FinalizationListener(_Listener):
    """Moves a table's verdict as its query's batches end, from a thread of its own."""

    def __init__(self, spark: SparkSession, run_id: str, control_table: str, table_name: str, *,
                 granularity: Granularity = "hour") -> None:
        truncate(_EPOCH, granularity)
        self.spark, self.run_id = spark, str(run_id)
        self.control_table, self.table_name = control_table, table_name
        self.granularity = granularity
        self.last_error: Exception | None = None
        self.failures = 0
        self._newest: Any = None
        self._stopped = False
        self._changed = threading.Condition()
        self._done: datetime.datetime | None = None
        self._warned_at = 0.0
        self._worker = threading.Thread(target=self._work, daemon=True,
                                        name=f"finalization of {table_name}")

    def start(self) -> None:
        """Begins to work."""
        self._worker.start()

    def offer(self, progress: Any) -> None:
        """A batch's progress; it replaces one that waits."""
        with self._changed:
            self._newest = progress
            self._changed.notify_all()

    def end(self) -> None:
        """No more progress comes."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def onQueryStarted(self, event: Any) -> None:
        """Nothing follows from it."""

    def onQueryProgress(self, event: Any) -> None:
        """A batch has ended."""
        if str(event.progress.runId) == self.run_id:
            self.offer(event.progress.json)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing follows from it."""

    def onQueryTerminated(self, event: Any) -> None:
        """The query has ended."""
        if str(event.runId) == self.run_id:
            self.end()

    def join(self, *, timeout: float | None = None) -> bool:
        """Waits until all that was offered is worked on and the query has ended."""
        self._worker.join(timeout)
        return not self._worker.is_alive()

    def _take(self) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._stopped)
            progress, self._newest = self._newest, None
            return progress

    def _work(self) -> None:
        while (progress := self._take()) is not None:
            try:
                self._advance(progress)
                self.last_error, self.failures = None, 0
            except Exception as error:
                self._tell(error)
        try:
            self.spark.streams.removeListener(self)
        except Exception as error:
            log.debug("the listener stays registered: %s", error)

    def _advance(self, progress: Any) -> None:
        end = end_offset_from_progress(progress)
        until = candidate(end, granularity=self.granularity)
        if until is None or (self._done is not None and until <= self._done):
            return
        advance(self.spark, self.control_table, self.table_name, end, granularity=self.granularity)
        self._done = until

    def _tell(self, error: Exception) -> None:
        self.last_error = error
        self.failures += 1
        if self.failures == 1:
            log.error("finalized_until of %s was not moved", self.table_name, exc_info=error)
            self._warned_at = time.monotonic()
        elif time.monotonic() - self._warned_at >= _WARNING_SECONDS:
            log.warning("finalized_until of %s was not moved, %d times in a row: %s",
                        self.table_name, self.failures, error)
            self._warned_at = time.monotonic()


def track(spark: SparkSession, query: StreamingQuery, control_table: str, table_name: str, *,
          granularity: Granularity = "hour") -> FinalizationListener:
    """Keeps the verdict of `table_name` moving while `query` runs."""
    listener = FinalizationListener(spark, str(query.runId), control_table, table_name,
                                    granularity=granularity)
    ensure_control(spark, control_table)
    spark.streams.addListener(listener)
    last = query.lastProgress
    if last is not None:
        listener.offer(last if isinstance(last, Mapping) else last.json)
    if not query.isActive:
        listener.end()
    listener.start()
    return listener


__all__ = ["CONTROL_COLUMNS", "CONTROL_COMMENT", "FinalizationListener", "advance", "candidate",
           "end_offset_from_progress", "ensure_control_table", "finalized_until", "freshness",
           "is_final", "track", "truncate"]
