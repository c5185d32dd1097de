"""Names that SQL Server allows and programs trip over: snapshot and stream through the real binary.

Databases, schemas, tables, columns and capture instances with brackets, quotes, blanks, $, Unicode, 128
characters. (Names that differ only in case: src/cdc/capture_instance_test.cc.) Bronze is read by deltalake's query engine (column mapping).
The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import sys
import tempfile

import deltalake
import pyarrow as pa

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402


@dataclasses.dataclass
class Case:
    name: str
    table: str
    key: str
    value: str
    schema: str = "dbo"
    instance: str = ""  # Empty: the default name.
    configured: str = ""  # Empty: the instance's name as it is.


CASES = [
    Case("plain", "orders", "id", "value"),
    Case("a closing bracket", "t]b", "i]d", "v]]al", schema="s]c", instance="inst one"),
    Case("quotes", "it's \"x\"", "k'ey", '"v"', schema="o'brien"),
    Case("blanks and $", "CRON UK$Item Ledger Entry", "Entry No_", "$Amount (LCY) {x}", schema="my schema"),
    Case("Unicode", "Größe_日本", "ключ", "naïve 🐟", instance="dbo_Größe_日本"),
    Case("128 characters", "t" * 128, "k" * 128, "v" * 127 + "é", instance="i" * 100),
    Case("dots and semicolons", "a.b;c--d", "k.e;y", "v,w", instance="a.b;c--d"),
    Case("percent and underscore", "100%_[x", "%k", "_v", instance="100%_[x"),
    Case("a name in another case", "Mixed", "Id", "Value", configured="DBO_mIXED"),
    Case("Unicode in another case", "Straße_É", "ID", "Ä", configured="DBO_Straße_é"),
]


def quoted(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"


def literal(name: str) -> str:
    return "N'" + name.replace("'", "''") + "'"


def braced(text: str) -> str:
    return "{" + text.replace("}", "}}") + "}"


def bronze_rows(path: pathlib.Path) -> list[dict]:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    return pa.table(query.execute("SELECT * FROM t").read_all()).to_pylist()


def try_case(args, folder: pathlib.Path, simulator: Simulator, database: str, case: Case) -> list[str]:
    where = f"{quoted(case.schema)}.{quoted(case.table)}"
    if case.schema != "dbo":
        simulator.run(f"CREATE SCHEMA {quoted(case.schema)}")
    simulator.run(f"CREATE TABLE {where} ({quoted(case.key)} int NOT NULL PRIMARY KEY, {quoted(case.value)} nvarchar(40) NULL)")
    simulator.run(f"INSERT {where} VALUES (1, N'one')")
    instance = f", @capture_instance = {literal(case.instance)}" if case.instance else ""
    simulator.run(f"EXEC sys.sp_cdc_enable_table {literal(case.schema)}, {literal(case.table)}, @role_name = NULL{instance}")
    simulator.capture()
    name = case.configured or case.instance or f"{case.schema}_{case.table}"
    pipeline = Pipeline(args.program, folder, simulator, braced(database), name, "names-v1")
    wrong = []
    for statements in ([], [f"INSERT {where} VALUES (2, NULL)", f"UPDATE {where} SET {quoted(case.value)} = N'uno' WHERE {quoted(case.key)} = 1",
                            f"DELETE {where} WHERE {quoted(case.key)} = 2"]):
        for statement in statements:
            simulator.run(statement)
        simulator.capture()
        code, output = pipeline.run()
        if code != 0:
            return [f"run ended with {code}:\n{output}"]
    rows = sorted((row["_operation"], row[case.key], row[case.value]) for row in bronze_rows(pipeline.bronze))
    want = [(0, 1, "one"), (1, 2, None), (2, 2, None), (3, 1, "one"), (4, 1, "uno")]
    if rows != want:
        wrong.append(f"bronze has {rows}, not {want}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-names-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder / "sim")
        try:
            database = "we]ird 'd\"b$ Ü}{"
            simulator.run(f"CREATE DATABASE {quoted(database)}")
            simulator.run(f"USE {quoted(database)}")
            simulator.run("EXEC sys.sp_cdc_enable_db")
            work = [(case.name, lambda at, case=case: try_case(args, at, simulator, database, case)) for case in CASES]
            for number, (title, run) in enumerate(work):
                wrong = run(folder / str(number))
                passed += not wrong
                failed += bool(wrong)
                for text in wrong:
                    print(f"FAILED {title}: {text}")
        finally:
            simulator.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
