"""The data sources `mssql_cdc` (a stream of changes) and `mssql_cdc_snapshot` (the whole table).

The extension plans and reads; the classes here carry its texts between Spark's processes: planner,
tasks and driver each have an extension, and a pool of sessions, of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mssql_cdc import _core
from mssql_cdc._metrics import Metrics
from mssql_cdc._sessions import find, log, texts, tokens, warn, without
from mssql_cdc._spark import DataSource, DataSourceReader, InputPartition
from mssql_cdc.types import OPERATIONS, SourceOptions

try:
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.streaming.datasource import (ReadAllAvailable, ReadMaxRows,
                                                  SupportsTriggerAvailableNow)

    HAS_ADMISSION_CONTROL = True
except ImportError:  # Spark before 4.2.
    from pyspark.sql.datasource import DataSourceStreamReader

    HAS_ADMISSION_CONTROL = False

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

KNOWN_OPTIONS = tuple(_core.source_options())
METADATA_COLUMNS = _core.metadata_columns(True)
RESERVED_COLUMNS = ("_capture_instance", "_start_lsn", "_seqval", "_operation", "_command_id",
                    "_commit_ts", "_batch_id", "_snapshot", "_chunk")
SCHEMA_CHANGE_POLICIES = ("classify", "fail")
ISOLATION_LEVELS = ("readCommitted", "snapshot")
MIN_ROWS_PER_PARTITION = 50_000

# Where the stream's checkpoint keeps the product's own files; given by to_delta().
NOTES_OPTION = "mssqlCdcNotes"


class ChangePartition(InputPartition):
    """One range of a batch, as the planner wrote it down."""

    def __init__(self, task: str) -> None:
        super().__init__(0)
        self.task = task


class SnapshotPartition(ChangePartition):
    """One range of the table."""


def _batches(scan: _core.Scan) -> Iterator[pa.RecordBatch]:
    """What a scan reads; its own exception where it fails."""
    import pyarrow as pa

    stream = pa.RecordBatchReader.from_stream(scan)
    while True:
        try:
            batch = stream.read_next_batch()
        except StopIteration:
            return
        except Exception:
            scan.raise_failure()
            raise
        yield batch


class _ReaderBase:
    """Options and what the extension makes of them, in whichever process this is."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.notes = find(options, NOTES_OPTION) or ""
        self.options = without(options, NOTES_OPTION)
        self._source: _core.ChangeSource | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    @property
    def source(self) -> _core.ChangeSource:
        """The planner's handle, made on first use."""
        if self._source is None:
            self._source = _core.ChangeSource.open(self.options, tokens(self.options), self.notes)
            warn(self._source.take_warnings())
        return self._source

    def initialOffset(self) -> dict[str, str]:
        """Where a new checkpoint starts."""
        return json.loads(self.source.initial_offset())

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[ChangePartition]:
        """The ranges of the batch from `start` to `end`."""
        summary, tasks = self.source.plan(json.dumps(start), json.dumps(end))
        warn(self.source.take_warnings())
        Metrics(find(self.options, "metricsPath")).leave_batch(summary)
        return [ChangePartition(task) for task in tasks]

    def read(self, partition: ChangePartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, in a task."""
        scan = _core.scan_changes(self.options, tokens(self.options), partition.task)
        yield from _batches(scan)
        report = scan.report()
        if report:
            Metrics(find(self.options, "metricsPath")).leave_read(report)

    def commit(self, end: dict[str, str]) -> None:
        """Spark's checkpoint holds everything up to `end`."""
        self.source.commit(json.dumps(end))

    def stop(self) -> None:
        """The query has ended."""
        self._source = None


if HAS_ADMISSION_CONTROL:

    class MssqlCdcStreamReader(_ReaderBase, DataSourceStreamReader, SupportsTriggerAvailableNow):
        """Plans batches of at most maxCommitsPerBatch commits."""

        def getDefaultReadLimit(self) -> Any:
            """The limit that Spark shows; the extension keeps it."""
            most = find(self.options, "maxCommitsPerBatch")
            return ReadMaxRows(int(most)) if most else ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:
            """Nothing above what there is now is read by this run."""
            self.source.freeze_end()

        def latestOffset(self, start: dict[str, str], limit: Any) -> dict[str, str]:
            """The end of the next batch; `start` while there is none."""
            end = json.loads(self.source.latest_offset(json.dumps(start)))
            warn(self.source.take_warnings())
            return start if end == start else end

        def reportLatestOffset(self) -> dict[str, str] | None:
            """The server's newest commit, for the query's progress."""
            newest = self.source.newest_offset()
            return json.loads(newest) if newest else None


class MssqlCdcLegacyStreamReader(_ReaderBase, DataSourceStreamReader):
    """For Spark before 4.2, which cannot limit a batch: each reads up to the newest commit."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(without(options, "maxCommitsPerBatch"))
        if find(options, "maxCommitsPerBatch"):
            log.warning("maxCommitsPerBatch is ignored: it needs Spark 4.2")

    def latestOffset(self) -> dict[str, str]:
        """The server's newest commit."""
        newest = self.source.newest_offset()
        return json.loads(newest) if newest else self.initialOffset()


class MssqlCdcSnapshotReader(DataSourceReader):
    """Reads the table's rows, each stamped with the LSN recorded before the read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def partitions(self) -> list[SnapshotPartition]:
        """Ranges of the table, for as many tasks."""
        _, tasks = _core.plan_snapshot(self.options, tokens(self.options))
        return [SnapshotPartition(task) for task in tasks]

    def read(self, partition: SnapshotPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range, in a task."""
        yield from _batches(
            _core.scan_snapshot(self.options, tokens(self.options), partition.task))


class MssqlCdcDataSource(DataSource):
    """`spark.readStream.format("mssql_cdc")`."""

    # How many tasks a batch may be read in where numPartitions is auto; None: one per CPU.
    default_num_partitions: int | None = None

    @classmethod
    def name(cls) -> str:
        return "mssql_cdc"

    def settings(self) -> dict[str, str]:
        """The options, with numPartitions decided."""
        given = texts(self.options)
        wanted = (find(given, "numPartitions") or "auto").strip().lower()
        if wanted != "auto" or self.default_num_partitions is None:
            return given
        return {**without(given, "numPartitions"), "numPartitions": str(self.default_num_partitions)}

    def schema(self) -> str:
        options = without(self.settings(), NOTES_OPTION)
        return _core.ChangeSource.open(options, tokens(options), "").schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if HAS_ADMISSION_CONTROL:
            return MssqlCdcStreamReader(self.settings())
        return MssqlCdcLegacyStreamReader(self.settings())


class MssqlCdcSnapshotDataSource(MssqlCdcDataSource):
    """`spark.read.format("mssql_cdc_snapshot")`."""

    @classmethod
    def name(cls) -> str:
        return "mssql_cdc_snapshot"

    def schema(self) -> str:
        columns = super().schema()
        return f"{columns}, `_chunk` INT" if find(self.options, "snapshotChunks") else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        return MssqlCdcSnapshotReader(without(self.settings(), NOTES_OPTION))


def register(spark: SparkSession) -> None:
    """Makes the formats `mssql_cdc` and `mssql_cdc_snapshot` known to a session."""
    try:
        cores: int | None = int(spark.sparkContext.defaultParallelism)
    except Exception:  # A session of Spark Connect does not say.
        cores = None

    class Changes(MssqlCdcDataSource):
        default_num_partitions = cores

    class Snapshot(MssqlCdcSnapshotDataSource):
        default_num_partitions = cores

    for source in (Changes, Snapshot):
        spark.dataSource.register(source)


def warn_unknown(options: Mapping[str, str]) -> None:
    """Logs one warning that names every option nobody knows."""
    others = _core.check_options(texts(options))
    if others:
        named = ", ".join(f"{name} (is it {nearest}?)" if nearest else name
                          for name, nearest in others)
        log.warning("unknown options are ignored: %s", named)


__all__ = ["HAS_ADMISSION_CONTROL", "ISOLATION_LEVELS", "KNOWN_OPTIONS", "METADATA_COLUMNS",
           "MIN_ROWS_PER_PARTITION", "MssqlCdcDataSource", "MssqlCdcLegacyStreamReader",
           "MssqlCdcSnapshotDataSource", "MssqlCdcSnapshotReader", "OPERATIONS",
           "RESERVED_COLUMNS", "SCHEMA_CHANGE_POLICIES", "SourceOptions", "register",
           "warn_unknown"]
