"""Current-state tables, and the proof that they are: made by the core in the calling process."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mssql_cdc import _core, tables
from mssql_cdc._sessions import texts, tokens, warn, without
from mssql_cdc.types import ApplyResult, Granularity, ReconcileResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEEDS = 1 << 64


def apply_changes(
    spark: SparkSession,
    bronze: str,
    target: str,
    *,
    capture_instance: str | None = None,
    keys: Sequence[str] | None = None,
    control_table: str,
    facts_table: str | None = None,
    options: Mapping[str, str] | None = None,
    granularity: Granularity = "hour",
) -> ApplyResult:
    """Brings the table `target`, one row a key, up to date with `bronze`."""
    _core.truncate(0, granularity)  # Refused before anything is written.
    if options is None and not (keys and capture_instance):
        raise ValueError("apply_changes without options needs keys and capture_instance: the source "
                         "is not asked for them")
    ensure_control(spark, control_table)
    places = _places(spark, bronze, control_table, facts_table)
    places |= {"silver": target, "silver_location": tables.place_for(spark, target),
               "granularity": granularity, "capture_instance": capture_instance or ""}
    silver = _open(options, places, keys)
    told = silver.apply()
    warn(told["warnings"])
    if told["bronze_found"]:
        tables.adopt(spark, target, places["silver_location"])
    return {"rebuilt": told["rebuilt"], "applied_lsn": told["applied_lsn"],
            "finalized_until": naive_utc(told["finalized_until_us"]),
            "bronze_found": told["bronze_found"]}


def reconcile(
    spark: SparkSession,
    options: Mapping[str, str],
    silver: str,
    *,
    keys: Sequence[str] | None = None,
    bronze: str,
    control_table: str,
    facts_table: str | None = None,
    bucket_rows: int = 1_000_000,
    sample: float = 0.01,
    report_table: str | None = None,
    seed: int | None = None,
    capture_wait: float = 15,
) -> ReconcileResult:
    """Compares `silver` with the source: counts first, then rows of what differs and of a sample.

    Where something differs, up to `capture_wait` seconds are waited until capture has read what was
    committed by then; 0: it is not asked.
    """
    if bucket_rows < 1:
        raise ValueError(f"bucket_rows is at least 1, not {bucket_rows}")
    if not 0 <= capture_wait <= 86_400:
        raise ValueError(f"capture_wait is between 0 and 86400 seconds, not {capture_wait}")
    if not 0 <= sample <= 1:
        raise ValueError(f"sample is between 0 and 1, not {sample}")
    places = _places(spark, bronze, control_table, facts_table)
    places |= {"silver": silver, "silver_location": tables.location(spark, silver)}
    report_location = ""
    if report_table is not None:
        if not tables.is_path(report_table):
            tables.create(spark, report_table, _core.report_definition())
        report_location = tables.location(spark, report_table)
    told = _open(options, places, keys).reconcile(
        bucket_rows, sample, report_location, float(capture_wait),
        None if seed is None else seed % _SEEDS)
    warn(_reasons_to_compare_again(told))
    import pyarrow as pa

    rows = pa.RecordBatchReader.from_stream(told["report"]).read_all()
    return {**told, "report": spark.createDataFrame(rows)}


def _reasons_to_compare_again(told: dict[str, Any]) -> list[str]:
    may_pass, scans_are_shown = told.pop("may_pass"), told.pop("scans_are_shown")
    snapshot = told.pop("open_snapshot_lsn")
    if not may_pass:
        return []
    if snapshot is not None:
        return [f"snapshot {snapshot} is open, so what differs may be rows of chunks that silver does "
                "not have yet: compare again when it is done and applied"]
    text = ("capture has not read all that was committed by then, so what differs may be changes on "
            "their way: compare again")
    return [text if scans_are_shown else
            f"{text}, with VIEW DATABASE STATE, which this login lacks, or with capture_wait=330: "
            "where nothing happens, capture shows every five minutes where it is"]


def ensure_control(spark: SparkSession, control_table: str) -> None:
    """Makes the control table, or brings it to this release's columns."""
    if not tables.is_path(control_table):
        tables.create(spark, control_table, _core.control_definition())
    _core.Control(tables.location(spark, control_table)).ensure()


def naive_utc(micros: int | None) -> datetime.datetime | None:
    """An instant as the API gives it."""
    if micros is None:
        return None
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)


def _places(spark: SparkSession, bronze: str, control_table: str,
            facts_table: str | None) -> dict[str, str]:
    places = {"bronze": bronze, "bronze_location": tables.place_for(spark, bronze),
              "control_table": control_table,
              "control_location": tables.location(spark, control_table)}
    if facts_table is not None:
        places |= {"facts_table": facts_table,
                   "facts_location": tables.place_for(spark, facts_table)}
    return places


def _open(options: Mapping[str, str] | None, places: dict[str, str],
          keys: Sequence[str] | None) -> _core.Silver:
    if isinstance(keys, str):
        raise TypeError("keys is a list of column names, not one text")
    given = None if options is None else without(texts(options), "metricsPath")
    return _core.Silver.open(given, tokens(given or {}), places, list(keys or []))


__all__ = ["apply_changes", "reconcile"]
