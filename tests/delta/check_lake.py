"""Reads tables that DeltaLake wrote with delta-rs and pyarrow, and has it continue the
tables of the existing package: check_lake.py WRITE_TABLES [EXISTING_PACKAGE_DATA]."""

import datetime
import decimal
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

HERE = pathlib.Path(__file__).resolve().parent
EXISTING = HERE.parents[2] / "shared/data/existing-package-0.8.0"
NTZ_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["timestampNtz", "invariants", "appendOnly"],
}


def actions(table: pathlib.Path, version: int) -> dict[str, list[dict]]:
    """The actions of one commit by kind, and under "order" the kinds as they come."""
    found = {"order": []}
    for line in (table / f"_delta_log/{version:020}.json").read_text().splitlines():
        [(kind, action)] = json.loads(line).items()
        found.setdefault(kind, []).append(action)
        found["order"].append(kind)
    return found


def equal(what: str, seen, expected) -> None:
    if seen != expected:
        raise AssertionError(f"{what}: {seen!r} instead of {expected!r}")


def rows_of(path: pathlib.Path) -> list[dict]:
    """All rows, as delta-rs reads them."""
    return pa.table(DeltaTable(str(path)).to_pyarrow_table()).to_pylist()


def mapped_rows_of(path: pathlib.Path) -> list[dict]:
    """As rows_of, by delta-rs's query engine, which knows column mapping."""
    query = QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t")
    return pa.table(query.read_all()).to_pylist()


def check_create(table: pathlib.Path) -> None:
    first = actions(table, 0)
    equal("version 0", first["order"], ["commitInfo", "metaData", "protocol"])
    [metadata] = first["metaData"]
    equal("protocol", first["protocol"], [NTZ_PROTOCOL])
    equal("configuration", metadata["configuration"], {"mssql_cdc.schema_version": "2"})
    equal("partitions", metadata["partitionColumns"], [])
    [info] = first["commitInfo"]
    equal("operation", info["operation"], "CREATE TABLE")
    equal("engine", info["engineInfo"], "mssql-cdc")
    for field in json.loads(metadata["schemaString"])["fields"]:
        equal("comment", field["metadata"], {"comment": f'comment of {field["name"]} "é"'})


def check_append(table: pathlib.Path) -> None:
    commit = actions(table, 1)
    equal("actions", sorted(commit["order"]), ["add", "commitInfo", "txn"])
    [txn] = commit["txn"]
    equal("txn", (txn["appId"], txn["version"]), ("kinds-v1", 3))
    [info] = commit["commitInfo"]
    equal("operation", info["operation"], "WRITE")
    equal("mode", info["operationParameters"]["mode"], "Append")
    equal("userMetadata", info["userMetadata"], '{"rows":4}')
    equal("rows", info["operationMetrics"]["numOutputRows"], "4")
    equal("blind", info["isBlindAppend"], True)
    [add] = commit["add"]
    file = table / add["path"]
    equal("size", add["size"], file.stat().st_size)
    stats = json.loads(add["stats"])
    equal("numRecords", stats["numRecords"], 4)
    equal("nulls", set(stats["nullCount"].values()), {1})
    for name in ("a_long", "a_date", "decimal_18_0", "a_text"):
        assert name in stats["minValues"] and name in stats["maxValues"], name
    parquet = pq.ParquetFile(file)
    columns = [parquet.metadata.row_group(0).column(i) for i in range(parquet.metadata.num_columns)]
    equal("codec", {column.compression for column in columns}, {"SNAPPY"})
    physical = {column.path_in_schema: column.physical_type for column in columns}
    equal("ntz", physical["an_ntz"], "INT64")
    equal("decimal(9,4)", physical["decimal_9_4"], "INT32")
    equal("decimal(18,0)", physical["decimal_18_0"], "INT64")
    equal("decimal(38,0)", physical["decimal_38_0"], "FIXED_LEN_BYTE_ARRAY")
    schema = parquet.schema_arrow
    equal("ntz zone", schema.field("an_ntz").type, pa.timestamp("us"))
    equal("instant zone", schema.field("an_instant").type, pa.timestamp("us", "UTC"))


def check_values(table: pathlib.Path) -> None:
    rows = {row["a_short"]: row for row in rows_of(table) if row["a_short"] is not None}
    smallest, largest, ordinary = rows[-32768], rows[32767], rows[-1]
    exact = decimal.Context(prec=60)
    digits = {"decimal_9_4": (9, 4), "decimal_18_0": (18, 0), "decimal_38_0": (38, 0),
              "decimal_38_10": (38, 10), "decimal_38_38": (38, 38)}
    for name, (precision, scale) in digits.items():
        most = exact.scaleb(decimal.Decimal(10**precision - 1), -scale)
        equal(name, (smallest[name], largest[name]), (exact.minus(most), most))
    equal("int", (smallest["an_int"], largest["an_int"]), (-(2**31), 2**31 - 1))
    equal("long", (smallest["a_long"], largest["a_long"]), (-(2**63), 2**63 - 1))
    equal("first day", smallest["a_date"], datetime.date(1, 1, 1))
    equal("last day", largest["a_date"], datetime.date(9999, 12, 31))
    equal("first time", smallest["an_ntz"], datetime.datetime(1, 1, 1))
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
    equal("last time", largest["an_ntz"], last)
    equal("last instant", largest["an_instant"].replace(tzinfo=None), last)
    equal("text", (smallest["a_text"], largest["a_text"]), ("", "😀 zß"))
    equal("binary", (smallest["a_binary"], largest["a_binary"], ordinary["a_binary"]),
          (b"\0\0", b"\xff\xfe", b""))
    equal("double", ordinary["a_double"], 2.23e-308)


def check_kinds(table: pathlib.Path) -> None:
    check_create(table)
    check_append(table)
    check_values(table)
    delta = DeltaTable(str(table))
    equal("version", delta.version(), 12)
    equal("txn", delta.transaction_version("kinds-v1"), 13)
    metadata = delta.metadata()
    equal("description", metadata.description, "every kind")
    equal("properties", metadata.configuration, {"mssql_cdc.schema_version": "3", "mine": "yes"})
    fields = json.loads(delta.schema().to_json())["fields"]
    equal("added", [(f["name"], f["type"], f["nullable"]) for f in fields[-2:]],
          [("late", "integer", True), ("later", "timestamp_ntz", True)])
    equal("comment of the added", fields[-2]["metadata"], {"comment": "added later"})
    rows = rows_of(table)
    equal("rows", len(rows), 14)
    equal("late", sorted(r["late"] for r in rows if r["late"] is not None), list(range(4, 14)))
    history = [entry["operation"] for entry in delta.history()]
    equal("history", history[-3:], ["ADD COLUMNS", "WRITE", "CREATE TABLE"])
    check_checkpoint(table)


def check_checkpoint(table: pathlib.Path) -> None:
    hint = json.loads((table / "_delta_log/_last_checkpoint").read_text())
    equal("_last_checkpoint", hint["version"], 10)
    checkpoint = pq.read_table(table / "_delta_log/00000000000000000010.checkpoint.parquet")
    txns = [row["txn"] for row in checkpoint.to_pylist() if row["txn"]]
    equal("txn in the checkpoint", [(t["appId"], t["version"]) for t in txns], [("kinds-v1", 11)])
    # Only the checkpoint and what follows: older log entries may be cleaned up.
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "t"
        shutil.copytree(table, copy)
        for version in range(10):
            (copy / f"_delta_log/{version:020}.json").unlink()
        equal("rows after clean-up", len(rows_of(copy)), 14)


def check_mapped(table: pathlib.Path, has_ntz: bool) -> None:
    first = actions(table, 0)
    [metadata], [protocol] = first["metaData"], first["protocol"]
    equal("mode", metadata["configuration"]["delta.columnMapping.mode"], "name")
    assert "columnMapping" in protocol["readerFeatures"], protocol
    names = ["order id", "a=b;{c},(d)", "plain"] + ["at\ttime"] * has_ntz
    fields = json.loads(metadata["schemaString"])["fields"]
    equal("names", [field["name"] for field in fields], names)
    equal("ids", [f["metadata"]["delta.columnMapping.id"] for f in fields],
          list(range(1, len(names) + 1)))
    equal("comment", fields[0]["metadata"]["comment"], "mapped")
    rows = sorted(mapped_rows_of(table), key=lambda row: (row["new (one)"] or 0, row["order id"]))
    equal("mapped rows", [(r["order id"], r["a=b;{c},(d)"], r["new (one)"]) for r in rows],
          [(0, "zero", None), (1, "one", None), (0, "zero", 77)])
    [add] = actions(table, 1)["add"]
    stored = pq.ParquetFile(table / add["path"]).schema_arrow.names
    assert not set(stored) & set(names), stored


def check_wide(table: pathlib.Path) -> None:
    commit = actions(table, 1)
    equal("files", len(commit["add"]), 3)
    for add in commit["add"]:
        stats = json.loads(add["stats"])
        first = [f"c{i}" for i in range(32)]
        equal("columns with statistics", sorted(stats["minValues"]), sorted(first))
        equal("columns with null counts", sorted(stats["nullCount"]), sorted(first))
    values = sorted(row["c39"] for row in rows_of(table))
    equal("values of the last column", values, [0, 1, 10, 11, 20, 21])


def large_rows() -> list[dict]:
    noise = bytes(i * i * 2_654_435_761 >> 40 & 0xFF for i in range(3_000_000))
    rows = [{"id": i, "t": f"small {i}", "b": f"small {i}".encode(), "must": f"small {i}"}
            for i in range(200)]
    rows[101].update(t="zé€😀" * 3_400_000, b=None)
    rows[102].update(t=None, b=noise)
    rows[103].update(t="é" * 1_000_000, b=b"")
    rows[104].update(must="must" * 500_000)
    rows[105].update(t="y" * 300_000)
    return rows


def check_large(table: pathlib.Path) -> None:
    [add] = actions(table, 1)["add"]
    stats = json.loads(add["stats"])
    equal("numRecords", stats["numRecords"], 200)
    equal("nulls", stats["nullCount"], {"id": 0, "t": 1, "b": 1, "must": 0})
    # Bounds of 32 characters; what is cut off the upper one sorts below its end.
    equal("least", (stats["minValues"]["t"], stats["minValues"]["must"]),
          ("small 0", "must" * 8))
    equal("greatest", stats["maxValues"]["t"], "é" * 32 + "\U0010ffff")
    expected = large_rows()
    file = pq.ParquetFile(table / add["path"])
    for name, rows in (("pyarrow", file.read().to_pylist()), ("delta-rs", rows_of(table)),
                       ("delta-rs's query engine", mapped_rows_of(table))):
        rows.sort(key=lambda row: row["id"])
        equal(f"rows of {name}", len(rows), 200)
        for row, wanted in zip(rows, expected):
            # Not by equal(): megabytes in a message help nobody.
            assert row == wanted, f"{name}: row {wanted['id']} differs"
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    equal("rows", [group.num_rows for group in groups][0], 101)
    columns = [group.column(i) for group in groups for i in range(4)]
    equal("codec", {column.compression for column in columns}, {"SNAPPY"})
    equal("nulls in Parquet", sum(column.statistics.null_count for column in columns), 2)


def check_plans(table: pathlib.Path) -> None:
    equal("protocol", actions(table, 0)["protocol"], [{"minReaderVersion": 1, "minWriterVersion": 2}])
    assert "description" not in actions(table, 0)["metaData"][0]
    equal("rows", rows_of(table), [])


def check_existing(program: str, data: pathlib.Path, folder: pathlib.Path) -> None:
    names = ["bronze_orders", "bronze_lines", "facts", "control", "report", "silver_orders",
             "bronze_orders_snapshot_plans"]
    for name in names:
        shutil.copytree(data / name, folder / name)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    before = {name: rows_of(folder / name) for name in names}
    tables = {name: DeltaTable(str(folder / name)) for name in names}
    expected = [describe(name, table, len(before[name])) for name, table in tables.items()]
    last = tables["bronze_orders"].transaction_version("orders-v1.g1")
    expected.append(f"last orders-v1.g1={last}")
    version = tables["bronze_orders"].version()
    expected.append(f"append outcome=1 version={version}")
    expected.append(f"append outcome=0 version={version + 1}")
    out = subprocess.run([program, "existing", folder], check=True, capture_output=True, text=True)
    equal("what the lake saw", out.stdout.splitlines()[:-1], expected)
    bronze = DeltaTable(str(folder / "bronze_orders"))
    equal("version", bronze.version(), version + 1)
    equal("txn", bronze.transaction_version("orders-v1.g1"), last + 1)
    equal("other txns", bronze.transaction_version("orders-v1"),
          tables["bronze_orders"].transaction_version("orders-v1"))
    rows = rows_of(folder / "bronze_orders")
    [new] = [row for row in rows if row["order_id"] == 4711]
    equal("new row", {key: value for key, value in new.items() if value is not None},
          {"_capture_instance": "dbo_orders_v2", "_operation": 2, "order_id": 4711,
           "_batch_id": 2, "_commit_ts": datetime.datetime(2026, 11, 20, 12)})
    equal("old rows", sorted(map(repr, (row for row in rows if row is not new))),
          sorted(map(repr, before["bronze_orders"])))
    equal("properties", bronze.metadata().configuration, {"mssql_cdc.schema_version": "2"})
    equal("metaData kept", "metaData" in actions(folder / "bronze_orders", version + 1), False)


def describe(name: str, table: DeltaTable, row_count: int) -> str:
    columns = len(json.loads(table.schema().to_json())["fields"])
    version = table.version()
    return (f"{name} version={version} rows={row_count} columns={columns} "
            f"read={row_count} commits={version + 1}")


def check_checkpoint_interval(program: str, folder: pathlib.Path) -> None:
    """A checkpoint every 10 commits, from version 500 on every 100."""
    subprocess.run([program, "commits", folder, "610"], check=True, stdout=subprocess.DEVNULL)
    [log] = folder.rglob("_delta_log")
    written = sorted(int(path.name[:20]) for path in log.glob("*.checkpoint.parquet"))
    equal("checkpoints", written, [*range(10, 510, 10), 600])
    equal("rows", DeltaTable(str(log.parent)).to_pyarrow_table().num_rows, 6100)


def main() -> int:
    program = sys.argv[1]
    data = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else EXISTING
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([program, "tables", folder], check=True)
        checks = [
            ("kinds", lambda: check_kinds(folder / "kinds")),
            ("mapped", lambda: check_mapped(folder / "mapped", False)),
            ("mapped_ntz", lambda: check_mapped(folder / "mapped_ntz", True)),
            ("wide", lambda: check_wide(folder / "wide")),
            ("large", lambda: check_large(folder / "large")),
            ("plans", lambda: check_plans(folder / "plans")),
            ("checkpoints", lambda: check_checkpoint_interval(program, folder / "commits")),
        ]
        if data.exists():
            copies = folder / "existing"
            copies.mkdir()
            checks.append(("existing", lambda: check_existing(program, data, copies)))
        else:
            print("not checked: existing (its data is not here)")
        failed = 0
        for check_name, check in checks:
            try:
                check()
                print(f"ok {check_name}")
            except Exception as error:  # Every check is reported.
                failed += 1
                print(f"FAILED {check_name}: {type(error).__name__}: {error}")
        print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
