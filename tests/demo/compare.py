"""Compares a lake with its source, row by row, with none of our code on either side.

Bronze is read by `deltalake`, the source by `python-tds`. A bronze table's rows are replayed by key
(snapshot first, then the changes in order), which must give the source table's current rows, and
every change must be there once. Silver, where there is one, must be those rows. Prints a line per table; the last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import os
import pathlib
import re
import sys
import uuid

import deltalake
import pyarrow as pa
import pytds

METADATA = ("_capture_instance", "_start_lsn", "_seqval", "_operation", "_command_id", "_commit_ts",
            "_batch_id", "_snapshot", "_chunk")
DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4


def as_bronze(value):
    """A value as python-tds gives it, in the form of bronze's type map (docs/formats.md)."""
    match value:
        case bool() | None | int() | str():
            return value
        case uuid.UUID():
            return str(value).upper()
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.timezone.utc)
        case datetime.time():
            return value.strftime("%H:%M:%S.%f") + "000"
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case decimal.Decimal():
            return value.normalize() if value else decimal.Decimal(0)
        case _:
            return value


def from_bronze(value):
    """A value as deltalake gives it, comparable with as_bronze's."""
    if isinstance(value, decimal.Decimal):
        return value.normalize() if value else decimal.Decimal(0)
    if isinstance(value, str) and re.fullmatch(r"\d\d:\d\d:\d\d\.\d{9}", value):
        return value[:15] + "000"  # python-tds keeps six digits of a time.
    return value


class Source:
    """The server, read with python-tds."""

    def __init__(self, port: int, database: str) -> None:
        self.connection = pytds.connect(
            "127.0.0.1", port=port, user="sa", password=os.environ["MSSQL_CDC_SIM_PASSWORD"],
            database=database, autocommit=True,
        )

    def query(self, sql: str) -> list[dict]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row)) for row in cursor.fetchall()]

    def tables(self) -> dict[str, tuple[str, list[str]]]:
        """Capture instance -> (bracketed table, key columns)."""
        found = {}
        for row in self.query("EXEC sys.sp_cdc_help_change_data_capture"):
            table = f"[{row['source_schema']}].[{row['source_table']}]"
            keys = re.findall(r"\[((?:[^\]]|\]\])*)\]", row["index_column_list"] or "")
            found[row["capture_instance"]] = (table, [key.replace("]]", "]") for key in keys])
        return found


def replay(rows: list[dict], keys: list[str]) -> dict[tuple, dict]:
    """The current rows by key. Raises if a change meets a state it cannot follow."""
    rows = sorted(rows, key=lambda r: (r["_start_lsn"], r["_command_id"] or -1, r["_seqval"] or "", r["_operation"]))
    current: dict[tuple, dict] = {}
    for row in rows:
        key = tuple(row[column] for column in keys)
        operation = row["_operation"]
        if operation in (0, INSERT):
            if key in current:
                raise ValueError(f"{key} is inserted at {row['_start_lsn']}, but is there already")
            current[key] = row
        elif key not in current:
            raise ValueError(f"operation {operation} at {row['_start_lsn']} on {key}, which is not there")
        elif operation == DELETE:
            del current[key]
        elif operation == AFTER:
            current[key] = row
    return current


def compare(source: Source, instance: str, table: str, keys: list[str], bronze: pathlib.Path) -> str:
    """Returns what was compared; raises ValueError with the first difference."""
    rows = deltalake.DeltaTable(os.fspath(bronze)).to_pyarrow_table().to_pylist()
    identities = collections.Counter(
        (r["_start_lsn"], r["_seqval"], r["_operation"]) for r in rows if r["_operation"] != 0
    )
    doubled = [identity for identity, count in identities.items() if count > 1]
    if doubled:
        raise ValueError(f"changes twice in bronze: {doubled[:3]}")
    stamps = [r["_start_lsn"] for r in rows if r["_operation"] == 0]
    # The snapshot of an empty table leaves no stamp: then every change is in bronze.
    after = f"WHERE __$start_lsn > CONVERT(binary(10), '{max(stamps)}', 1)" if stamps else ""
    held = source.query(f"SELECT COUNT(*) AS n FROM cdc.[{instance}_CT] {after}")[0]["n"]
    if held != len(identities):
        raise ValueError(f"{len(identities)} changes in bronze, {held} in the change table")
    current = replay(rows, keys)
    expected = source.query(f"SELECT * FROM {table}")
    columns = [c for c in rows[0] if c not in METADATA]
    for row in expected:
        key = tuple(as_bronze(row[column]) for column in keys)
        mine = current.pop(key, None)
        if mine is None:
            raise ValueError(f"{key} is in the source and not in bronze")
        for column in columns:
            if from_bronze(mine[column]) != as_bronze(row[column]):
                raise ValueError(f"{key}.{column}: source {row[column]!r}, bronze {mine[column]!r}")
    if current:
        raise ValueError(f"{next(iter(current))} is in bronze and not in the source")
    snapshot = sum(r["_operation"] == 0 for r in rows)
    return f"{len(expected)} rows equal, from {snapshot} snapshot rows and {len(identities)} changes"


def compare_silver(source: Source, table: str, keys: list[str], silver: pathlib.Path) -> str:
    """The same of silver, through delta-rs's engine, which knows deletion vectors."""
    engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(silver)))
    rows = pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()
    current = {tuple(row[column] for column in keys): row for row in rows}
    if len(current) != len(rows):
        raise ValueError("a key is in silver twice")
    expected = source.query(f"SELECT * FROM {table}")
    for row in expected:
        key = tuple(as_bronze(row[column]) for column in keys)
        mine = current.pop(key, None)
        if mine is None:
            raise ValueError(f"{key} is in the source and not in silver")
        for column in (name for name in mine if name not in METADATA):
            if from_bronze(mine[column]) != as_bronze(row[column]):
                raise ValueError(f"{key}.{column}: source {row[column]!r}, silver {mine[column]!r}")
    if current:
        raise ValueError(f"{next(iter(current))} is in silver and not in the source")
    return f"{len(expected)} rows of silver equal"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--database", default="shop")
    parser.add_argument("--lake", type=pathlib.Path, required=True, help="holds bronze/<table>")
    args = parser.parse_args()
    source = Source(args.port, args.database)
    passed = failed = 0
    for instance, (table, keys) in sorted(source.tables().items()):
        bronze = args.lake / "bronze" / re.sub(r"^\[\w+\]\.\[(.*)\]$", r"\1", table)
        if not bronze.exists():
            continue
        silver = args.lake / "silver" / bronze.name
        works = [lambda: compare(source, instance, table, keys, bronze)]
        if silver.exists():
            works.append(lambda: compare_silver(source, table, keys, silver))
        for work in works:
            try:
                print(f"  {table}: {work()}")
                passed += 1
            except ValueError as wrong:
                print(f"  {table}: DIFFERS: {wrong}")
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
