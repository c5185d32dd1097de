"""The shapes of options and results, for type checkers; plain dicts at run time."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    SparkSessionLike = SparkSession
    StreamingQueryLike = StreamingQuery
else:
    SparkSessionLike = "SparkSession"
    StreamingQueryLike = "StreamingQuery"

SnapshotMode = Literal["full", "chunked"]
OnDataLoss = Literal["fail", "resnapshot"]
Isolation = Literal["snapshot", "readCommitted"]
Granularity = Literal["minute", "hour", "day"]
BackfillState = Literal["done", "running", "waiting_headroom", "waiting_metrics", "no_snapshot"]

OPERATIONS = {0: "snapshot", 1: "delete", 2: "insert", 3: "update_before", 4: "update_after"}


class SourceOptions(TypedDict, total=False):
    """Every source option, as spelled in the reference; names ignore case, values are text."""

    captureInstance: str
    connectionString: str
    user: str
    password: str
    accessToken: str
    tokenProvider: str
    backend: str
    connectTimeout: str
    lockTimeoutMs: str
    sourceTimeZone: str
    fakePath: str
    columns: str
    includeCommandId: str
    startingLsn: str
    maxCommitsPerBatch: str
    numPartitions: str
    arrowBatchSize: str
    failOnDataLoss: str
    schemaChangePolicy: str
    metricsPath: str
    snapshotLsn: str
    snapshotChunks: str
    snapshotKeys: str
    isolationLevel: str


class Offset(TypedDict):
    """A position: the last commit that was processed; `commit_ts` is "" when unknown."""

    lsn: str
    commit_ts: str


class BackfillStatus(TypedDict):
    """How far a chunked snapshot has come."""

    snapshot: str | None
    chunks_done: int
    chunks_total: int | None
    done: bool
    paused: bool
    state: BackfillState
    reason: str | None


class ApplyResult(TypedDict):
    """What apply_changes() did."""

    rebuilt: bool
    applied_lsn: str | None
    finalized_until: datetime.datetime | None
    bronze_found: bool


class Freshness(TypedDict):
    """How old a table's verdict is."""

    table_name: str
    finalized_until: datetime.datetime | None
    updated_at: datetime.datetime | None
    age_seconds: float | None
    seconds_since_update: float | None
    open_snapshot_lsn: str | None


class ReconcileResult(TypedDict):
    """What reconcile() found."""

    run_id: str
    silver_version: int
    silver_lsn: str | None
    source_lsn: str
    buckets: int
    match: int
    in_flight: int
    mismatch: int
    hashed: int
    failures: dict[str, int]
    report: Any


class SnapshotOpenDetail(TypedDict, total=False):
    """Of a snapshot_open facts row."""

    mode: SnapshotMode
    kind: str
    generation: int
    lost_from_ts: str | None
    lost_to_ts: str | None
    switch_batch_id: int


class SnapshotPlanDetail(TypedDict, total=False):
    """Of a snapshot_plan facts row."""

    snapshot: str
    kind: str
    keys: list[str]
    chunk_rows: int
    chunk_count: int


class SnapshotChunkDetail(TypedDict, total=False):
    """Of a snapshot_chunk facts row."""

    snapshot: str
    wave: int
    chunk: int
    last: bool


class SnapshotCompletionDetail(TypedDict, total=False):
    """Of a chunked snapshot's bootstrap or resnapshot facts row."""

    snapshot: str
    chunks: int
    rows: int
    last_lsn: str


# `from` is a keyword, so this one cannot be written as a class.
DataSkippedDetail = TypedDict(
    "DataSkippedDetail", {"from": str, "to": str, "certain": bool, "reason": str}, total=False)


class BatchDetail(TypedDict):
    """Of a micro-batch's facts row."""

    warnings: list[str]


class WaveMetadata(TypedDict, total=False):
    """userMetadata of a backfill wave's commit."""

    backfill: str
    wave: int
    lsn: str
    attempt: str
    chunks: list[dict[str, Any]]
