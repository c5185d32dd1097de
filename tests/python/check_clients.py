"""Options backend=mssql-python and backend=arrow-odbc read the rows that the core's client reads.

The table of values as snapshot and as changes, through the extension as Spark calls it but without
Spark; every column's type and every value must be the same. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE.parent / name) for name in ("harness", "values", "peers")]

from adapters_odbc import microsoft_driver  # noqa: E402
from check_values import ROWS, Table  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

READ = """
import json, sys
import pyarrow as pa
from mssql_cdc import _core
from mssql_cdc._sessions import tokens

options = json.loads(sys.argv[1])
access = tokens(options)

def table(scan):
    read = pa.RecordBatchReader.from_stream(scan)
    try:
        return read.read_all()
    except Exception:
        scan.raise_failure()
        raise

made = {}
source = _core.ChangeSource.open(options, access, "")
start = source.initial_offset()
end = source.latest_offset(start)
_, tasks = source.plan(start, end)
made["changes"] = pa.concat_tables([table(_core.scan_changes(options, access, task)) for task in tasks])
_, tasks = _core.plan_snapshot(options, access)
made["snapshot"] = pa.concat_tables([table(_core.scan_snapshot(options, access, task)) for task in tasks])
for name, rows in made.items():
    with pa.OSFile(sys.argv[2] + "/" + name, "wb") as into, pa.ipc.new_file(into, rows.schema) as writer:
        writer.write_table(rows)
"""
# Types that a client gives as texts where an instant is planned: refused.
REFUSED = {"mssql-python": (), "arrow-odbc": ("datetimeoffset",)}
# Values that it gives in its own way.
LIMITS = {"mssql-python": (), "arrow-odbc": ("c_time_7", "c_time_0", "c_uniqueidentifier")}


def read(site: pathlib.Path, options: dict, folder: pathlib.Path) -> dict | str:
    import pyarrow as pa

    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", READ, json.dumps(options), folder],
                          capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.fspath(site),
                               "ODBCSYSINI": os.fspath(folder.parent),
                               "ODBCINSTINI": "odbcinst.ini", "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        return done.stderr
    return {name: pa.ipc.open_file(folder / name).read_all() for name in ("changes", "snapshot")}


def compare(tally: Tally, client: str, told: dict | str, native: dict) -> None:
    if isinstance(told, str):
        tally.equal(f"{client}: reads", told[-1500:], "")
        return
    for what, want in native.items():
        got = told[what]
        tally.equal(f"{client}, {what}: columns", got.column_names, want.column_names)
        tally.equal(f"{client}, {what}: rows", got.num_rows, want.num_rows)
        for name in want.column_names:
            if name in LIMITS[client]:
                continue
            tally.equal(f"{client}, {what}: type of {name}", got.schema.field(name).type,
                        want.schema.field(name).type)
            for row, (value, wanted) in enumerate(zip(got[name].to_pylist(),
                                                      want[name].to_pylist())):
                tally.equal(f"{client}, {what}: {name}, row {row}", str(value), str(wanted))


def table_of(client: str) -> str:
    return client.replace("-", "_")


def fill(simulator: Simulator, refused: dict[str, tuple[str, ...]]) -> None:
    """A table of values for each client, and one of all, with what it takes to change each row."""
    every = json.loads((HERE.parent / "peers" / "values.json").read_text())
    tables = {table_of(client): Table([column for column in every if not column["type"].startswith(
        ("sql_variant", *types))]) for client, types in {**refused, "every": ()}.items()}
    simulator.create("vals", *(table.create(name) for name, table in tables.items()))
    for name, table in tables.items():
        simulator.enable(name)
        for number, row in enumerate(ROWS):
            simulator.run(table.insert(name, number, row))
        for number in range(len(ROWS)):
            simulator.run(table.update(name, number, ROWS[(number + 1) % len(ROWS)]))
    simulator.capture()


def options_for(simulator: Simulator, client: str) -> dict:
    return {
        "connectionString": f"Server={simulator.host},{simulator.port};Database=vals;"
        "Encrypt=yes;TrustServerCertificate=yes", "user": simulator.user,
        "password": simulator.password, "captureInstance": f"dbo_{table_of(client)}",
        "numPartitions": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--site", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-clients-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            (folder / "odbcinst.ini").write_text(
                f"[ODBC Driver 18 for SQL Server]\nDriver={microsoft_driver()}\n")
            fill(simulator, REFUSED)
            for client, refused in REFUSED.items():
                options = options_for(simulator, client)
                native = read(args.site, options, folder / f"native-{client}")
                if isinstance(native, str):
                    raise SystemExit(native)
                tally.equal("there are changes", native["changes"].num_rows, 3 * len(ROWS))
                told = read(args.site, {**options, "backend": client}, folder / client)
                compare(tally, client, told, native)
                if refused:
                    other = {**options_for(simulator, "every"), "backend": client}
                    told = read(args.site, other, folder / f"{client}-every")
                    tally.equal(f"{client}: refuses {refused}", "SchemaChanged" in str(told), True)
        finally:
            simulator.stop()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
