"""SQL Server change data capture into Delta Lake tables, exactly once, on Spark.

    from mssql_cdc import stream

    query = stream(spark, options).to_delta(
        "bronze.orders", app_id="orders-v1", checkpoint="/checkpoints/orders",
        facts_table="ops.ingestion_facts", bootstrap=True)

What needs PySpark is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from mssql_cdc.client import (Backend, CdcClient, DataLossError, Lsn, SchemaChangedError,
                              is_data_loss, is_schema_changed, make_client)
from mssql_cdc.types import (OPERATIONS, ApplyResult, BackfillState, BackfillStatus, BatchDetail,
                             DataSkippedDetail, Freshness, Granularity, Isolation, Offset,
                             OnDataLoss, ReconcileResult, SnapshotChunkDetail,
                             SnapshotCompletionDetail, SnapshotMode, SnapshotOpenDetail,
                             SnapshotPlanDetail, SourceOptions, SparkSessionLike,
                             StreamingQueryLike, WaveMetadata)

__version__ = "0.1.0"

_NEEDS_SPARK = {
    "HAS_ADMISSION_CONTROL": "source",
    "MssqlCdcDataSource": "source",
    "apply_changes": "silver",
    "await_all": "many",
    "reconcile": "silver",
    "register": "source",
    "start_many": "many",
    "stop_all": "many",
    "stream": "pipeline",
}

__all__ = [
    "ApplyResult", "Backend", "BackfillState", "BackfillStatus", "BatchDetail", "CdcClient",
    "DataLossError", "DataSkippedDetail", "Freshness", "Granularity", "HAS_ADMISSION_CONTROL",
    "Isolation", "Lsn", "MssqlCdcDataSource", "OPERATIONS", "Offset", "OnDataLoss",
    "ReconcileResult", "SchemaChangedError", "SnapshotChunkDetail", "SnapshotCompletionDetail",
    "SnapshotMode", "SnapshotOpenDetail", "SnapshotPlanDetail", "SourceOptions",
    "SparkSessionLike", "StreamingQueryLike", "WaveMetadata", "apply_changes", "await_all",
    "is_data_loss", "is_schema_changed", "make_client", "reconcile", "register", "start_many",
    "stop_all", "stream",
]


def __getattr__(name: str) -> Any:
    module = _NEEDS_SPARK.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_NEEDS_SPARK])
