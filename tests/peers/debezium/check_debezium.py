"""Debezium's SQL Server connector and this product read one history from the simulator.

Both take a snapshot, then a scripted history runs (history.py), then what both delivered is
compared in the form that normal_form.py defines: the snapshot's rows and, for each key, its
changes in order. A test is one key of one table; besides, each table's keys must be the same.
The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path[:0] = [os.fspath(ROOT / "tests/harness"), os.fspath(ROOT / "tools")]

import deltalake  # noqa: E402
import dev_paths  # noqa: E402
import history  # noqa: E402
import normal_form  # noqa: E402
from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

DATABASE = "history"
WAIT_SECONDS_MAX = 180
SHOWN_MAX = 20


class Debezium:
    """The connector in a process of its own; its events by table, in order."""

    def __init__(self, folder: pathlib.Path, simulator: Simulator, query_mode: str) -> None:
        self.log = folder / "debezium.log"
        settings = {
            "name": "peer",
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
            "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
            "topic.prefix": "peer",
            "database.hostname": simulator.host,
            "database.port": simulator.port,
            "database.user": simulator.user,
            "database.password": simulator.password,
            "database.names": DATABASE,
            "database.encrypt": "false",
            "data.query.mode": query_mode,
            "poll.interval.ms": 50,
            "errors.max.retries": 0,
            "include.schema.changes": "false",
            "tombstones.on.delete": "false",
            "decimal.handling.mode": "string",
            "binary.handling.mode": "hex",
            "time.precision.mode": "isostring",
            "converter.schemas.enable": "false",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
        }
        properties = folder / "debezium.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.process = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path(), "DebeziumReader",
             properties],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log.open("w"),
            text=True)
        self.snapshot: dict[str, list[dict]] = {table: [] for table in history.KEYS}
        self.changes: dict[str, list[dict]] = {table: [] for table in history.KEYS}
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def wait_for(self, reached, what: str) -> None:
        """Takes events until `reached` says so of one of them."""
        while True:
            try:
                event = self.lines.get(timeout=WAIT_SECONDS_MAX)
            except queue.Empty:
                raise SystemExit(self.failed(f"did not deliver {what}")) from None
            if event is None:
                raise SystemExit(self.failed(f"ended before {what}"))
            value = event["value"]
            table = value["source"]["table"]
            (self.snapshot if value["op"] == "r" else self.changes)[table].append(value)
            if reached(value):
                return

    def failed(self, what: str) -> str:
        lines = self.log.read_text().splitlines()
        told = [line for line in lines if "Exception: " in line or " ERROR " in line]
        end = "\n".join(f"{line:.600}" for line in told[-SHOWN_MAX:])
        return f"{end}\nfailed: Debezium {what}\n0 passed, 1 failed"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def class_path() -> str:
    """Debezium's jars and the reader, which is compiled for them."""
    jars = dev_paths.cache() / "java/debezium"
    if not list(jars.glob("debezium-connector-sqlserver-*.jar")) or not shutil.which("javac"):
        raise SystemExit("missing clients: Debezium (Maven artefacts)\n0 passed, 1 failed")
    classes = dev_paths.cache() / "java/debezium_reader"
    subprocess.run(["javac", "-d", classes, "-cp", f"{jars}/*", HERE / "DebeziumReader.java"],
                   check=True, stdin=subprocess.DEVNULL)
    return f"{classes}{os.pathsep}{jars}/*"


class Run:
    """One simulator with both readers on it."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, query_mode: str) -> None:
        self.query_mode = query_mode
        self.simulator = Simulator(program, folder)
        self.simulator.create(DATABASE, *history.TABLES)
        for table in history.KEYS:
            self.simulator.enable(table)
        for statement in history.BEFORE:
            self.simulator.run(statement)
        self.simulator.capture()
        self.tick_count = 0
        self.simulator.run("INSERT dbo.ticks VALUES (0)")
        self.simulator.capture()
        self.pipelines = {
            table: Pipeline(program, folder / table, self.simulator, DATABASE, f"dbo_{table}",
                            f"{table}-v1") for table in history.KEYS}
        self.read_with_product(*history.KEYS)
        self.debezium = Debezium(folder, self.simulator, query_mode)

    def read_with_product(self, *names: str) -> None:
        for name in names:
            code, output = self.pipelines[name].run()
            if code != 0:
                raise SystemExit(f"{name} ended with {code}:\n{output}\n0 passed, 1 failed")

    def tick(self) -> None:
        """Waits until Debezium has delivered all that was captured."""
        self.tick_count += 1
        number = self.tick_count
        self.simulator.run(f"INSERT dbo.ticks VALUES ({number})")
        self.simulator.capture()
        self.debezium.wait_for(
            lambda value: value["op"] == "c" and value["source"]["table"] == "ticks"
            and value["after"]["id"] == number, f"tick {number}")

    def carry_out(self) -> None:
        self.debezium.wait_for(lambda value: value["source"]["snapshot"] == "last",
                               "its snapshot")
        for statement in history.CHANGES:
            if statement == history.CAPTURE:
                self.simulator.capture()
            elif statement == history.SWITCH:
                self.tick()
                self.captured = self.captured_columns()
                self.read_with_product(history.SWITCHED)
            elif statement != history.RETIRE or self.query_mode == "function":
                self.simulator.run(statement)
        self.tick()
        self.read_with_product(*history.KEYS)

    def captured_columns(self) -> dict[str, set[str]]:
        """Of each capture instance, while both are there."""
        found: dict[str, set[str]] = {}
        with self.simulator.connection.cursor() as cursor:
            cursor.execute("SELECT t.capture_instance, c.column_name FROM cdc.change_tables t "
                           "JOIN cdc.captured_columns c ON c.object_id = t.object_id")
            for instance, column in cursor.fetchall():
                found.setdefault(instance, set()).add(column)
        return found

    def types(self, table: str) -> dict[str, str]:
        with self.simulator.connection.cursor() as cursor:
            cursor.execute("SELECT COLUMN_NAME, DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS "
                           f"WHERE TABLE_SCHEMA = N'dbo' AND TABLE_NAME = N'{table}'")
            return dict(cursor.fetchall())

    def bronze(self, name: str) -> list[dict]:
        return deltalake.DeltaTable(
            os.fspath(self.pipelines[name].bronze)).to_pyarrow_table().to_pylist()

    def stop(self) -> None:
        self.debezium.stop()
        self.simulator.stop()


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, got, want, what: str) -> None:
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= SHOWN_MAX:
            print(f"failed: {what}\n  Debezium: {str(got):.1200}\n  bronze:   {str(want):.1200}")


def compare(tally: Tally, run: Run, table: str) -> None:
    key, types = history.KEYS[table], run.types(table)
    rows = run.bronze(table)
    ours = normal_form.bronze_changes(rows, types, run.captured)
    theirs = [normal_form.debezium_change(value, types)
              for value in run.debezium.changes[table]]
    if run.query_mode == "direct":  # Rule 5.
        for change in [*ours, *theirs]:
            change.pop("at")
    snapshot = [{"before": None, "after": normal_form.bronze_row(row, types, run.captured)}
                for row in rows if row["_operation"] == 0]
    read = [{"before": None, "after": normal_form.debezium_row(value["after"], types)}
            for value in run.debezium.snapshot[table]]
    for what, got, want in (("snapshot", read, snapshot), ("changes", theirs, ours)):
        got, want = (normal_form.by_key(found, key) for found in (got, want))
        tally.check(sorted(got), sorted(want), f"{table}: keys of the {what}")
        for one in sorted(set(got) & set(want)):
            tally.check(got[one], want[one], f"{table} {one}: {what}")


def check_mode(tally: Tally, program: pathlib.Path, query_mode: str) -> None:
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-debezium-") as name:
        run = Run(program, pathlib.Path(name), query_mode)
        try:
            run.carry_out()
            for table in history.KEYS:
                compare(tally, run, table)
            counts = {table: len(found) for table, found in run.debezium.changes.items()}
        finally:
            run.stop()
    print(f"Debezium, data.query.mode={query_mode}: changes read: {counts}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev peers --debezium",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path,
                        default=dev_paths.program("mssql-cdc"))
    parser.add_argument("--modes", nargs="+", default=["direct", "function"])
    given = parser.parse_args()
    tally = Tally()
    for query_mode in given.modes:
        check_mode(tally, given.program, query_mode)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
