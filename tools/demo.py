"""`./dev demo`: the product's own demo, and other people's programs that check its result.

Runs `mssql-cdc demo`, which starts the shop, streams, is killed once and recovers. While it
goes on serving the shop, bronze (read by deltalake in a process of its own) is compared row
by row with the source (read by python-tds), and opened with Polars, pandas and DuckDB.
"""

import argparse
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def follow(process: subprocess.Popen) -> str | None:
    """Shows the demo's output until it serves the shop; returns the port, None at the end."""
    for line in process.stdout:
        print(line, end="", flush=True)
        serving = re.match(r"serving the shop on 127\.0\.0\.1:(\d+)", line)
        if serving:
            return serving[1]
    return None


def open_with_readers(table: pathlib.Path) -> None:
    """The table's row count as three other programs see it; raises if they differ."""
    import deltalake
    import duckdb
    import polars

    delta = deltalake.DeltaTable(os.fspath(table))
    arrow = delta.to_pyarrow_table()
    connection = duckdb.connect()
    connection.register("bronze", arrow)
    counts = {
        "polars": polars.read_delta(os.fspath(table)).height,
        "pandas": len(delta.to_pandas()),
        "duckdb": connection.execute("SELECT count(*) FROM bronze").fetchone()[0],
    }
    print(f"  {table.name}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    if len({len(arrow), *counts.values()}) != 1:
        raise SystemExit("the readers do not agree")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "build/demo",
                        help="removed and made anew")
    given = parser.parse_args()
    began = time.monotonic()
    shutil.rmtree(given.dir, ignore_errors=True)
    environment = dict(os.environ, MSSQL_CDC_SIM_PASSWORD=secrets.token_hex(8) + "Aa1!")
    process = subprocess.Popen([given.program, "demo", "--dir", given.dir, "--hold"],
                               env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        port = follow(process)
        if port is None:
            return process.wait() or 1
        print("\nThe same, seen by other people's programs: bronze through deltalake, the "
              "source through python-tds", flush=True)
        compared = subprocess.run([sys.executable, ROOT / "tests/demo/compare.py", "--port",
                                   port, "--lake", given.dir / "lake"], env=environment)
        for table in sorted((given.dir / "lake/bronze").iterdir()):
            open_with_readers(table)
    finally:
        process.stdin.close()
        code = process.wait(60)
    print(f"the demo took {time.monotonic() - began:.1f} s; its files are in {given.dir}")
    return code or compared.returncode


if __name__ == "__main__":
    sys.exit(main())
