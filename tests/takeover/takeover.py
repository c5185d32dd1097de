"""Tables and checkpoints that the existing package left, continued by the local runtime.

They were recorded below /lake on the package's simulated source; its history is imported into the
simulator here, and the catalog says where the tables are now. The streams go on: one in its second
re-snapshot's generation, past a switched capture instance, and one of a composite key whose chunked
snapshot is complete. Then the source loses changes, and a chunked re-snapshot follows. What was
there stays as it was; what comes is compared with the source. Then the same from tables as each older
schema version had them, silver included. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import deltalake  # noqa: E402
from older_forms import (  # noqa: E402
    BRONZE_SINCE, CONTROL_SINCE, FACTS_SINCE, NEWEST, facts_row_at, rewrite, version_of)
from simulator import PASSWORD, Simulator  # noqa: E402
from tally import Tally  # noqa: E402

EXISTING = HERE.parents[2] / "shared/data/existing-package-0.8.0"

STREAMS = """[source]
connectionString = {connection}
user = "{user}"
password = {{ env = "PIPELINE_PASSWORD" }}
facts_table = "/lake/facts"
trigger = "availableNow"
bootstrap = true
[catalog]
"/lake/facts" = "facts"
"/lake/bronze_orders" = "bronze_orders"
"/lake/bronze_lines" = "bronze_lines"
"/lake/silver_orders" = "silver_orders"
"/lake/control" = "control"
[[stream]]
captureInstance = "dbo_orders"
target = "/lake/bronze_orders"
app_id = "orders-v1"
checkpoint = "ckpt/orders"
snapshot = "{mode}"
on_data_loss = "{on_data_loss}"
resnapshot_interval_days = 0
{silver}[[stream]]
captureInstance = "dbo_lines"
target = "/lake/bronze_lines"
app_id = "lines-v1"
checkpoint = "ckpt/lines"
snapshot = "chunked"
failOnDataLoss = false
"""


# Lines of the stream of orders: the silver that the package left is kept up to date as well.
SILVER = """silver = "/lake/silver_orders"
control_table = "/lake/control"
"""


class TakeOver(Tally):
    def __init__(self, program: pathlib.Path, lake: pathlib.Path, simulator: Simulator) -> None:
        super().__init__()
        self.program, self.lake, self.simulator = program, lake, simulator

    def write_file(self, mode: str, on_data_loss: str, silver: str = "") -> None:
        connection = (f"Server={self.simulator.host},{self.simulator.port};Database=fake;"
                      f"{self.simulator.encryption}")
        (self.lake / "pipeline.toml").write_text(STREAMS.format(
            connection=json.dumps(connection), user=self.simulator.user, mode=mode,
            on_data_loss=on_data_loss, silver=silver))

    def call(self, command: str, *arguments: str, want: int = 0) -> str:
        done = subprocess.run(
            [self.program, command, self.lake / "pipeline.toml", *arguments], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
            env=dict(os.environ, PIPELINE_PASSWORD=PASSWORD))
        if done.returncode != want:
            self.equal(f"{command} {arguments}", f"{done.returncode}\n{done.stdout[-2500:]}", want)
        return done.stdout

    def rows(self, table: str) -> list[dict]:
        return deltalake.DeltaTable(os.fspath(self.lake / table)).to_pyarrow_table().to_pylist()

    def columns(self, table: str, names: list[str]) -> list[tuple]:
        return sorted(tuple(row[name] for name in names) for row in self.rows(table))

    def source(self, table: str, columns: list[str]) -> list[tuple]:
        connection = self.simulator.connect("fake")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(columns)} FROM dbo.{table}")
            rows = sorted(tuple(row) for row in cursor.fetchall())
        connection.close()
        return rows


def latest(rows: list[dict], key: list[str], snapshot: str, columns: list[str]) -> list[tuple]:
    """What a consumer rebuilds: the rows of `snapshot` and every change above it."""
    images: dict[tuple, tuple] = {}
    for row in rows:
        is_snapshot = row["_operation"] == 0
        if row["_snapshot"] != snapshot if is_snapshot else row["_start_lsn"] <= snapshot:
            continue
        order = (row["_start_lsn"], -1 if row["_command_id"] is None else row["_command_id"],
                 row["_seqval"] or "", row["_operation"])
        name = tuple(row[column] for column in key)
        if name not in images or images[name][0] < order:
            images[name] = (order, row)
    return sorted(tuple(row[column] for column in columns)
                  for _, row in images.values() if row["_operation"] != 1)


def goes_on(test: TakeOver) -> None:
    """Nothing new, then changes, in the generation and at the position that were left."""
    before = {table: test.rows(table) for table in ("bronze_orders", "bronze_lines", "facts")}
    test.write_file("full", "fail")
    test.call("run")
    for table in ("bronze_orders", "bronze_lines"):
        test.equal(f"{table} without changes", len(test.rows(table)), len(before[table]))
    for status in test.call("backfill", "--stream", "lines-v1").splitlines()[-1:]:
        test.equal("the composite key's snapshot is complete", "done" in status, True)
    simulator = test.simulator
    simulator.run("USE fake")
    simulator.run("UPDATE dbo.dbo_orders SET customer = N'ours' WHERE order_id = 7")
    simulator.run("DELETE dbo.dbo_orders WHERE order_id = 8")
    simulator.run("INSERT dbo.dbo_lines (order_id, line_no, sku) VALUES (500, 1, N'ours')")
    simulator.capture()
    test.call("run")
    orders = test.rows("bronze_orders")
    new = orders[:] if len(orders) > len(before["bronze_orders"]) else []
    test.equal("changes of orders came", bool(new), True)
    kept = [row for row in orders if row in before["bronze_orders"]]
    test.equal("what was there stays", len(kept), len(before["bronze_orders"]))
    facts = test.rows("facts")
    added = facts[:]
    for row in before["facts"]:
        added.remove(row)
    test.equal("the sink id is the generation's",
               {row["app_id"] for row in added if row["target"].endswith("orders")}, {"orders-v1.g2"})
    test.equal("targets as they were named", {row["target"] for row in added},
               {"/lake/bronze_orders", "/lake/bronze_lines"})
    for sink in ("orders-v1.g2", "lines-v1"):
        batches = sorted(row["batch_id"] for row in facts
                         if row["app_id"] == sink and row["event"] is None)
        test.equal(f"{sink}: batches without a gap", batches,
                   list(range(batches[0], batches[0] + len(batches))))
    snapshot = max(row["end_lsn"] for row in facts if row["event"] in ("resnapshot", "bootstrap")
                   and row["target"].endswith("orders"))
    columns = ["order_id", "customer", "amount", "big"]
    test.equal("orders rebuilt from generation 2's snapshot",
               latest(orders, ["order_id"], snapshot, columns),
               test.source("dbo_orders", columns))


def loses_and_recovers(test: TakeOver) -> None:
    """A loss on top of what was taken over: generation 3, in chunks."""
    simulator = test.simulator
    simulator.run("UPDATE dbo.dbo_orders SET customer = N'lost' WHERE order_id < 6")
    simulator.capture()
    simulator.run("EXEC sim.cleanup @retention = 0")
    simulator.run("UPDATE dbo.dbo_orders SET customer = N'kept' WHERE order_id = 12")
    simulator.capture()
    test.write_file("full", "fail")
    test.call("run", want=65)
    test.write_file("chunked", "resnapshot")
    test.call("run")
    test.call("backfill", "--stream", "orders-v1", "--chunk-rows", "8", "--max-waves", "1", want=75)
    simulator.run("DELETE dbo.dbo_orders WHERE order_id = 15")
    simulator.capture()
    test.call("backfill", "--stream", "orders-v1")
    test.call("run")
    state = json.loads((test.lake / "ckpt/orders/_mssql_cdc_generation.json").read_text())
    test.equal("generation", state["generation"], 3)
    facts = test.rows("facts")
    done = [row for row in facts if row["event"] == "resnapshot" and row["app_id"] == "orders-v1.g3"]
    test.equal("one resnapshot row", len(done), 1)
    columns = ["order_id", "customer", "amount", "big"]
    test.equal("orders rebuilt from generation 3's snapshot",
               latest(test.rows("bronze_orders"), ["order_id"], done[0]["end_lsn"], columns),
               test.source("dbo_orders", columns))


def without_chunks(row: dict) -> dict | None:
    """Of bronze: what a release without chunked snapshots had written."""
    return row if row["_chunk"] is None else None


def older_version(test: TakeOver, version: int) -> None:
    """Facts at `version`, bronze and control not above it; silver is the source in the end."""
    lake, simulator = test.lake, test.simulator
    versions = {"bronze": min(version, NEWEST["bronze"]), "facts": version,
                "control": min(version, NEWEST["control"])}
    rewrite(lake / "facts", version, FACTS_SINCE, facts_row_at(version))
    rewrite(lake / "bronze_orders", versions["bronze"], BRONZE_SINCE,
            without_chunks if versions["bronze"] < 2 else lambda row: row)
    rewrite(lake / "control", versions["control"], CONTROL_SINCE)
    what = f"tables at {versions}"
    test.equal(f"{what}, before", {name: version_of(lake / table) for name, table in (
        ("bronze", "bronze_orders"), ("facts", "facts"), ("control", "control"))}, versions)
    columns = ["order_id", "customer", "amount", "big"]
    # The recording ends with rows of silver altered, for its reconcile to find.
    altered = {row[0] for row in
               set(test.columns("silver_orders", columns)) ^ set(test.source("dbo_orders", columns))}
    test.equal(f"{what}: altered rows", altered, {10, 11, 999})
    before = test.rows("bronze_orders")
    test.write_file("full", "fail", SILVER)
    simulator.run("USE fake")
    simulator.run("UPDATE dbo.dbo_orders SET customer = N'ours' WHERE order_id = 7")
    simulator.run("DELETE dbo.dbo_orders WHERE order_id = 8")
    simulator.run("INSERT dbo.dbo_orders (order_id, customer) VALUES (900, N'new')")
    simulator.capture()
    test.call("run")
    test.equal(f"{what}, after", {name: version_of(lake / table) for name, table in (
        ("bronze", "bronze_orders"), ("facts", "facts"), ("control", "control"))}, NEWEST)
    bronze = test.rows("bronze_orders")
    test.equal(f"{what}: changes came once", len(bronze), len(before) + 4)
    test.equal(f"{what}: silver is the source",
               [row for row in test.columns("silver_orders", columns) if row[0] not in altered],
               [row for row in test.source("dbo_orders", columns) if row[0] not in altered])
    batches = sorted(row["batch_id"] for row in test.rows("facts")
                     if row["app_id"] == "orders-v1.g2" and row["event"] is None)
    test.equal(f"{what}: batches without a gap", batches,
               list(range(batches[0], batches[0] + len(batches))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--tables", type=pathlib.Path, default=EXISTING,
                        help="the folder that the existing package left")
    args = parser.parse_args()
    tally = Tally()
    take_over(args, tally, goes_on, loses_and_recovers)
    for version in range(NEWEST["facts"] + 1):
        take_over(args, tally, functools.partial(older_version, version=version))
    return tally.close()


def take_over(args, tally: Tally, *parts) -> None:
    """`parts` on a copy of the tables and of their source."""
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-takeover-") as name:
        folder = pathlib.Path(name)
        lake = folder / "lake"
        shutil.copytree(args.tables, lake)
        for path in [lake, *lake.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        simulator = Simulator(args.program, folder, "--import-fake", os.fspath(lake / "fake"))
        try:
            test = TakeOver(args.program, lake, simulator)
            for part in parts:
                part(test)
            tally.passed, tally.failed = tally.passed + test.passed, tally.failed + test.failed
        finally:
            simulator.stop()


if __name__ == "__main__":
    sys.exit(main())
