"""The table of values per SQL type (tests/peers/values.json), through the product into Delta and back.

Each row of the table goes three ways: inserted before CDC is enabled (snapshot), inserted after
(operation 2), then updated to another row of the table (3 and 4) and deleted (1). Bronze is read by
`deltalake` and compared with what was inserted. The last line is `N passed, N failed`, a case being
one cell on one path.

The rules of CDC applied here (docs/cdc.md, "Large values"): text, ntext and image are NULL in
operations 1 and 3; (max) types are NULL in operation 3 unless the update changed them.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import os
import pathlib
import struct
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import deltalake  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

ROWS = ("typical", "least", "most", "empty", "null")
PATHS = {0: "snapshot", 1: "delete", 2: "insert", 3: "before image", 4: "after image"}


def expected(sql_type: str, text: str | None):
    """What bronze must hold for a cell whose canonical text is `text` (type map: docs/formats.md)."""
    if text is None:
        return None
    base = sql_type.split("(")[0].split(" ")[0]
    match base:
        case "bit":
            return text == "1"
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(text)
        case "real":
            return struct.unpack("<f", struct.pack("<f", float(text)))[0]
        case "float":
            return float(text)
        case "decimal" | "numeric" | "money" | "smallmoney":
            return decimal.Decimal(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "time":
            whole, _, fraction = text.partition(".")
            return f"{whole}.{fraction:0<9}"
        case "datetime" | "smalldatetime" | "datetime2":
            return timestamp(text)
        case "datetimeoffset":
            moment, offset = text.rsplit(" ", 1)
            sign = -1 if offset[0] == "-" else 1
            minutes = sign * (int(offset[1:3]) * 60 + int(offset[4:6]))
            at = timestamp(moment) - datetime.timedelta(minutes=minutes)
            return at.replace(tzinfo=datetime.timezone.utc)
        case "binary" | "varbinary" | "image" | "rowversion":
            return bytes.fromhex(text[2:])
        case _:
            return text


def timestamp(text: str) -> datetime.datetime:
    """Cut to microseconds, as datetime2(7) is."""
    whole, _, fraction = text.partition(".")
    at = datetime.datetime.fromisoformat(whole)
    return at.replace(microsecond=int(f"{fraction:0<6}"[:6]))


def is_max(sql_type: str) -> bool:
    return "(max)" in sql_type or sql_type == "xml"


def is_old_lob(sql_type: str) -> bool:
    return sql_type.split(" ")[0] in ("text", "ntext", "image")


class Table:
    def __init__(self, columns: list[dict]) -> None:
        self.columns = columns

    def create(self, name: str) -> str:
        cells = ", ".join(f"[{c['column']}] {c['type']} NULL" for c in self.columns)
        return f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, {cells})"

    def insert(self, name: str, row_id: int, row: str) -> str:
        names = ", ".join(f"[{c['column']}]" for c in self.columns)
        values = ", ".join(c["cells"][row]["sql"] for c in self.columns)
        return f"INSERT dbo.{name} (id, {names}) VALUES ({row_id}, {values})"

    def update(self, name: str, row_id: int, row: str) -> str:
        sets = ", ".join(f"[{c['column']}] = {c['cells'][row]['sql']}" for c in self.columns)
        return f"UPDATE dbo.{name} SET {sets} WHERE id = {row_id}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    every = json.loads((HERE.parent / "peers" / "values.json").read_text())
    # sql_variant has no place in the type map (docs/formats.md): such a column is an error.
    table = Table([c for c in every if not c["type"].startswith("sql_variant")])
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-values-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            cases = list(through_the_product(args.program, folder, simulator, table))
        finally:
            simulator.stop()
    for what, got, want in cases:
        same = type(got) is type(want) and got == want
        passed += same
        failed += not same
        if not same:
            print(f"FAILED {what}: bronze has {got!r:.120}, inserted was {want!r:.120}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def through_the_product(program, folder, simulator, table):
    """Yields (what, got, want) for every cell on every path."""
    simulator.create("vals", table.create("v"))
    for number, row in enumerate(ROWS):
        simulator.run(table.insert("v", number, row))
    simulator.enable("v")
    pipeline = Pipeline(program, folder / "run", simulator, "vals", "dbo_v", "values-v1")
    must_run(pipeline)
    for number, row in enumerate(ROWS):
        simulator.run(table.insert("v", 100 + number, row))
    for number, row in enumerate(ROWS):
        simulator.run(table.update("v", 100 + number, ROWS[(number + 1) % len(ROWS)]))
    for number in range(len(ROWS)):
        simulator.run(f"DELETE dbo.v WHERE id = {100 + number}")
    simulator.capture()
    must_run(pipeline)
    rows = deltalake.DeltaTable(os.fspath(pipeline.bronze)).to_pyarrow_table().to_pylist()
    found = {(row["_operation"], row["id"]): row for row in rows}
    if len(rows) != 5 * len(ROWS) or len(found) != len(rows):
        yield "number of rows in bronze", len(rows), 5 * len(ROWS)
        return
    for number, row in enumerate(ROWS):
        after = ROWS[(number + 1) % len(ROWS)]
        yield from cells(table, found[0, number], 0, row, None)
        yield from cells(table, found[2, 100 + number], 2, row, None)
        yield from cells(table, found[3, 100 + number], 3, row, after)
        yield from cells(table, found[4, 100 + number], 4, after, None)
        yield from cells(table, found[1, 100 + number], 1, after, None)


def cells(table, got, operation, row, changed_to):
    for column in table.columns:
        text, sql_type = column["cells"][row]["text"], column["type"]
        want = expected(sql_type, text)
        if operation in (1, 3) and is_old_lob(sql_type):
            want = None
        if operation == 3 and is_max(sql_type) and column["cells"][changed_to]["text"] == text:
            want = None
        yield f"{column['column']} {row} ({PATHS[operation]})", got[column["column"]], want


def must_run(pipeline) -> None:
    code, output = pipeline.run()
    if code != 0:
        raise SystemExit(f"the run ended with {code}:\n{output}\n0 passed, 1 failed")


if __name__ == "__main__":
    sys.exit(main())
