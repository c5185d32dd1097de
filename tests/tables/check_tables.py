"""Bronze and facts as the product leaves them, read by `deltalake`: what another program relies on.

One table goes through a bootstrap, three micro-batches and an idle one. Checked are columns, types
and their order, protocol and properties, `txn` versions, userMetadata of each commit, and every
column of the facts rows, against docs/formats.md (the layout of the existing package's tables). The
last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import deltalake  # noqa: E402
import pyarrow as pa  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

APP_ID = "shop-v1"
LSN = re.compile(r"^0x[0-9A-F]{20}$")
BRONZE = [
    ("_capture_instance", "string"), ("_start_lsn", "string"), ("_seqval", "string"),
    ("_operation", "integer"), ("_command_id", "integer"), ("_commit_ts", "timestamp_ntz"),
    ("id", "integer"), ("name", "string"), ("price", "decimal(18,4)"), ("seen", "timestamp"),
    ("_batch_id", "integer"), ("_snapshot", "string"), ("_chunk", "integer"),
]
FACTS = [
    ("app_id", "string"), ("batch_id", "long"), ("rows", "long"), ("min_lsn", "string"),
    ("max_lsn", "string"), ("min_commit_ts", "timestamp_ntz"), ("max_commit_ts", "timestamp_ntz"),
    ("deletes", "long"), ("inserts", "long"), ("updates", "long"), ("started_at", "timestamp_ntz"),
    ("duration_ms", "long"), ("source_rtt_ms", "double"), ("read_seconds", "double"),
    ("read_mb", "double"), ("network_wait_ms", "long"), ("retention_watermark_ts", "timestamp_ntz"),
    ("retention_headroom_hours", "double"), ("event", "string"), ("lost_from_ts", "timestamp_ntz"),
    ("lost_to_ts", "timestamp_ntz"), ("source_max_commit_ts", "timestamp_ntz"),
    ("capture_lag_seconds", "double"), ("ingestion_lag_seconds", "double"), ("end_lsn", "string"),
    ("end_commit_ts", "timestamp_ntz"), ("detail", "string"), ("target", "string"),
    ("written_at", "timestamp_ntz"),
]
# Of a batch with rows, all but these are set.
NEVER_IN_A_BATCH = {"event", "lost_from_ts", "lost_to_ts", "detail"}


def columns(table: deltalake.DeltaTable) -> list[tuple[str, str]]:
    fields = json.loads(table.schema().to_json())["fields"]
    return [(field["name"], field["type"]) for field in fields]


def check_layout(tally: Tally, name: str, table: deltalake.DeltaTable, expected, version: str) -> None:
    tally.equal(f"{name}: columns", columns(table), expected)
    fields = json.loads(table.schema().to_json())["fields"]
    tally.true(f"{name}: every column is nullable", all(field["nullable"] for field in fields))
    metadata = [f for f in fields if f["name"].startswith("_") or name == "facts"]
    tally.true(f"{name}: metadata columns have comments",
               all(f["metadata"].get("comment") for f in metadata), metadata)
    described = table.metadata()
    tally.equal(f"{name}: properties", described.configuration, {"mssql_cdc.schema_version": version})
    tally.true(f"{name}: has a description", bool(described.description))
    tally.equal(f"{name}: is not partitioned", described.partition_columns, [])
    protocol = table.protocol()
    tally.equal(f"{name}: protocol", (protocol.min_reader_version, protocol.min_writer_version), (3, 7))
    tally.equal(f"{name}: reader features", protocol.reader_features, ["timestampNtz"])
    first = table.history()[-1]
    tally.equal(f"{name}: version 0 is CREATE TABLE", first["operation"], "CREATE TABLE")


def check_bronze(tally: Tally, table: deltalake.DeltaTable, batches: list[dict]) -> None:
    tally.equal("bronze: txn is the last batch with rows", table.transaction_version(APP_ID),
                max(row["batch_id"] for row in batches if row["rows"]))
    commits = [json.loads(c["userMetadata"]) for c in reversed(table.history()) if c.get("userMetadata")]
    snapshot, said = commits[0], commits[1:]
    tally.equal("bronze: the snapshot's userMetadata", list(snapshot), ["snapshot", "lsn", "commit_ts"])
    tally.equal("bronze: the snapshot names the instance", snapshot["snapshot"], "dbo_items")
    tally.equal("bronze: keys of a batch's userMetadata", list(said[0]),
                ["rows", "min_lsn", "max_lsn", "min_commit_ts", "max_commit_ts", "deletes", "inserts",
                 "updates", "batch_id", "app_id"])
    with_rows = [row for row in batches if row["rows"]]
    tally.equal("bronze: one commit for each batch with rows", len(said), len(with_rows))
    for metadata, fact in zip(said, with_rows):
        for key in ("rows", "min_lsn", "max_lsn", "deletes", "inserts", "updates", "batch_id", "app_id"):
            tally.equal(f"userMetadata and facts of batch {fact['batch_id']}: {key}", metadata[key], fact[key])
    rows = table.to_pyarrow_table().to_pylist()
    for row in rows:
        lsns = [row["_start_lsn"]] + ([row["_seqval"]] if row["_operation"] else [])
        tally.true("bronze: LSNs are 0x and 20 digits", all(LSN.match(lsn) for lsn in lsns), lsns)
        tally.true("bronze: commit times are whole milliseconds", row["_commit_ts"].microsecond % 1000 == 0)
        snapshot_row = row["_operation"] == 0
        tally.equal("bronze: what is NULL in a row of this kind",
                    [row[c] is None for c in ("_seqval", "_command_id", "_batch_id", "_snapshot", "_chunk")],
                    [True, True, True, False, True] if snapshot_row else [False, False, False, True, True])


def check_facts(tally: Tally, table: deltalake.DeltaTable, bronze: str, changes: list[list[int]]) -> list[dict]:
    rows = table.to_pyarrow_table().to_pylist()
    events = [row["event"] for row in sorted(rows, key=lambda r: r["written_at"]) if row["event"]]
    tally.equal("facts: events", events, ["snapshot_open", "bootstrap"])
    batches = sorted((row for row in rows if row["event"] is None), key=lambda row: row["batch_id"])
    tally.equal("facts: batch ids", [row["batch_id"] for row in batches], list(range(len(batches))))
    tally.equal("facts: txn", table.transaction_version(f"{APP_ID}#facts"), batches[-1]["batch_id"])
    tally.equal("facts: bootstrap's txn", table.transaction_version(f"{APP_ID}#events"), 0)
    counted = [[row["inserts"], row["updates"], row["deletes"], row["rows"]] for row in batches if row["rows"]]
    tally.equal("facts: inserts, updates, deletes, rows", counted, changes)
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    for row in batches:
        absent = {name for name, value in row.items() if value is None}
        if row["rows"]:
            tally.true("facts: columns that are NULL", NEVER_IN_A_BATCH <= absent, absent)
            tally.equal("facts: other columns that are NULL", absent - NEVER_IN_A_BATCH - {"network_wait_ms"}, set())
            tally.true("facts: LSNs are in order",
                       LSN.match(row["min_lsn"]) and row["min_lsn"] <= row["max_lsn"] <= row["end_lsn"], row)
            tally.equal("facts: ingestion lag", row["ingestion_lag_seconds"],
                        round((row["source_max_commit_ts"] - row["end_commit_ts"]).total_seconds(), 3))
            tally.equal("facts: headroom", row["retention_headroom_hours"],
                        round((row["end_commit_ts"] - row["retention_watermark_ts"]).total_seconds() / 3600, 2))
        tally.equal("facts: target", row["target"], bronze)
        tally.true("facts: written after started", row["started_at"] <= row["written_at"] <= now, row)
        tally.true("facts: read_mb has six decimals", round(row["read_mb"] or 0, 6) == (row["read_mb"] or 0))
    return batches


def run_odd_names(program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> list[tuple]:
    """Operation, key and value of a table whose names Delta takes only with column mapping."""
    simulator.run("CREATE TABLE dbo.[order lines] ([line id] int NOT NULL PRIMARY KEY, [price ({€=;,})] int)")
    simulator.enable("order lines")
    pipeline = Pipeline(program, folder, simulator, "shop", "dbo_order lines", "odd-v1")
    for statements in (["INSERT dbo.[order lines] VALUES (1, 5)"],
                       ["INSERT dbo.[order lines] VALUES (2, NULL)",
                        "UPDATE dbo.[order lines] SET [price ({€=;,})] = 6 WHERE [line id] = 1"]):
        for statement in statements:
            simulator.run(statement)
        simulator.capture()
        code, output = pipeline.run()
        if code != 0:
            return [(code, output)]
    # delta-rs's query engine knows column mapping; its pyarrow reader does not.
    table = deltalake.DeltaTable(os.fspath(pipeline.bronze))
    query = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    rows = pa.table(query.read_all()).to_pylist()
    return sorted((row["_operation"], row["line id"], row["price ({€=;,})"]) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-tables-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            simulator.create("shop", "CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, name nvarchar(40), "
                                     "price decimal(18,4), seen datetimeoffset(7))")
            simulator.run("INSERT dbo.items VALUES (1, N'Ærø', 1.5, '2026-01-02 03:04:05.1234567 +02:00'), "
                          "(2, N'ねじ', NULL, NULL)")
            simulator.enable("items")
            pipeline = Pipeline(args.program, folder / "run", simulator, "shop", "dbo_items", APP_ID,
                                maxCommitsPerBatch=2)
            for statements in ([], ["INSERT dbo.items VALUES (3, N'c', 2, NULL)", "UPDATE dbo.items SET price = 3 WHERE id = 1"],
                               ["DELETE dbo.items WHERE id = 2"]):
                for statement in statements:
                    simulator.run(statement)
                simulator.capture()
                code, output = pipeline.run()
                if code != 0:
                    raise SystemExit(f"the run ended with {code}:\n{output}\n0 passed, 1 failed")
            odd = run_odd_names(args.program, folder / "odd", simulator)
        finally:
            simulator.stop()
        tally.equal("bronze of odd names", odd, [(0, 1, 5), (2, 2, None), (3, 1, 5), (4, 1, 6)])
        bronze = deltalake.DeltaTable(os.fspath(pipeline.bronze))
        facts = deltalake.DeltaTable(os.fspath(pipeline.facts))
        check_layout(tally, "bronze", bronze, BRONZE, "2")
        check_layout(tally, "facts", facts, FACTS, "14")
        batches = check_facts(tally, facts, os.fspath(pipeline.bronze), [[1, 1, 0, 3], [0, 0, 1, 1]])
        check_bronze(tally, bronze, batches)
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
