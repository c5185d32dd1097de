"""Brings tables into the form that an older schema version of the existing package had.

The columns that later migrations add are gone with the rows that only later releases write, and the
property tells the older number. What each version has is the specification's. A chunked snapshot of
the time before the plans table keeps its key values in the facts.
"""

from __future__ import annotations

import json
import pathlib

import deltalake
import pyarrow as pa
from deltalake import QueryBuilder

FACTS_SINCE = {
    1: ("source_rtt_ms", "read_seconds", "read_mb", "network_wait_ms"),
    2: ("retention_watermark_ts", "retention_headroom_hours"),
    3: ("event", "lost_from_ts", "lost_to_ts"),
    4: ("source_max_commit_ts", "capture_lag_seconds", "ingestion_lag_seconds"),
    5: ("end_lsn", "end_commit_ts"),
    6: ("detail",),
}
CONTROL_SINCE = {1: ("applied_lsn", "snapshot_lsn"), 2: ("open_snapshot_lsn", "snapshot_wave")}
BRONZE_SINCE = {2: ("_snapshot", "_chunk")}
NEWEST = {"bronze": 2, "facts": 14, "control": 4}
CHUNKS_SINCE, MODES_SINCE, PLANS_SINCE = 7, 8, 13
PROPERTY = "mssql_cdc.schema_version"


def rewrite(table: pathlib.Path, version: int, since: dict[int, tuple], change=lambda row: row) -> None:
    """The table at an older `version`; rows that `change` makes None are gone."""
    delta = deltalake.DeltaTable(str(table))
    read = pa.table(QueryBuilder().register("t", delta).execute("SELECT * FROM t").read_all())
    later = {name for number, names in since.items() if number > version for name in names}
    schema = pa.schema([field for field in pa.schema(delta.schema().to_arrow())
                        if field.name not in later])
    rows = [row for row in map(change, read.to_pylist()) if row is not None]
    deltalake.write_deltalake(delta, pa.Table.from_pylist(rows, schema=schema), mode="overwrite",
                              schema_mode="overwrite")
    log = sorted((table / "_delta_log").glob("*.json"))
    metadata = [action["metaData"] for file in log for action in map(json.loads, file.open())
                if "metaData" in action][-1]
    metadata["configuration"].pop(PROPERTY, None)
    if version:  # Absent means 0.
        metadata["configuration"][PROPERTY] = str(version)
    name = f"{int(log[-1].stem) + 1:020}.json"
    (table / "_delta_log" / name).write_text(
        json.dumps({"commitInfo": {"timestamp": 0, "operation": "SET TBLPROPERTIES"}}) + "\n"
        + json.dumps({"metaData": metadata}) + "\n")


def version_of(table: pathlib.Path) -> int:
    return int(deltalake.DeltaTable(str(table)).metadata().configuration.get(PROPERTY, "0"))


def facts_row_at(version: int):
    """What a release of that version had written."""
    def change(row: dict) -> dict | None:
        event = row["event"]
        if event is None or (event in ("bootstrap", "resnapshot") and version >= 3):
            return row
        is_old = version >= (MODES_SINCE if event == "snapshot_open" else CHUNKS_SINCE)
        return row if is_old and version >= 3 else None
    return change


def whole_details(plans: pathlib.Path, version: int):
    """Facts rows of a chunked snapshot with what the plans table holds for later releases."""
    rows = [json.loads(row["detail"]) | {"event": row["event"]} for row in
            deltalake.DeltaTable(str(plans)).to_pyarrow_table().to_pylist()]
    kept = {(row.pop("event"), row.get("chunk"), row.get("wave")): row for row in rows}

    def change(row: dict) -> dict | None:
        if row["event"] is None or not row["event"].startswith("snapshot_"):
            return row
        if row["event"] == "snapshot_plan" and version < MODES_SINCE:
            return None
        detail = json.loads(row["detail"])
        detail = dict(kept[(row["event"], detail.get("chunk"), detail.get("wave"))])
        detail.pop("chunk_count", None)
        if version < MODES_SINCE:
            detail.pop("mode", None), detail.pop("kind", None)
        return row | {"detail": json.dumps(detail)}
    return change
