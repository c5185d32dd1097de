"""Silver end to end: the simulator's table, streamed and applied by `mssql-cdc run`, read by others.

Silver is compared with the source as python-tds reads it, through delta-rs's query engine and
Polars. Then rows of silver are altered behind the product's back: `mssql-cdc reconcile` must find
each one and nothing else, also with a writer at work, and `--repair` must put them right. A kill at a
random moment of an apply must change nothing. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import decimal
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import deltalake  # noqa: E402
import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltalake import QueryBuilder  # noqa: E402
from pipeline import RETRY, Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

COLUMNS = ["id", "customer", "amount", "placed_at", "note"]
TABLE = """CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY, customer nvarchar(40) NULL,
amount decimal(18,4) NULL, placed_at datetime2(7) NULL, note nvarchar(max) NULL)"""
ODD = "CREATE TABLE dbo.odd (_id int NOT NULL PRIMARY KEY, _rev nvarchar(20) NULL, n int NULL)"
TYPED = "CREATE TABLE dbo.typed (id int NOT NULL PRIMARY KEY, n int NULL)"
LINES = """CREATE TABLE dbo.lines (order_id int NOT NULL, sku varchar(20) NOT NULL, price float NULL,
CONSTRAINT pk_lines PRIMARY KEY (order_id, sku))"""
DIFFERS = 65


def plain(value):
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    return value.isoformat() if hasattr(value, "isoformat") else None if value is None else str(value)


def rows(table: pa.Table, columns: list[str]) -> list[tuple]:
    return sorted((tuple(plain(row[name]) for name in columns) for row in table.to_pylist()), key=str)


def by_engine(path: pathlib.Path) -> pa.Table:
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    return pa.table(engine.execute("SELECT * FROM t").read_all())


def by_polars(path: pathlib.Path) -> pa.Table:
    return polars.read_delta(os.fspath(path)).to_arrow()


READERS = {"delta-rs": by_engine, "polars": by_polars}


class Place:
    """A database, its stream with silver, and both sides of the comparison."""

    def __init__(self, tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator,
                 name: str, compared: list[str], **options) -> None:
        self.tally, self.simulator, self.name, self.columns = tally, simulator, name, compared
        self.folder = folder / name
        self.silver, self.report = self.folder / "silver", self.folder / "report"
        self.pipeline = Pipeline(program, self.folder, simulator, "shop", f"dbo_{name}", f"{name}-v1",
                                 silver=str(self.silver), control_table=str(self.folder / "control"),
                                 granularity="minute", **options)

    def source(self) -> list[tuple]:
        connection = self.simulator.connect("shop")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(self.columns)} FROM dbo.{self.name}")
            found = sorted((tuple(plain(v) for v in row) for row in cursor.fetchall()), key=str)
        connection.close()
        return found

    def run(self, command: str = "run", *more: str) -> tuple[int, list[dict]]:
        process = subprocess.run(
            [self.pipeline.program, command, "--log", "json", self.pipeline.file, *more],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
            env=dict(os.environ, PIPELINE_PASSWORD=self.pipeline.password))
        events = []
        for line in process.stdout.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                events.append({"text": line})
        return process.returncode, events

    def must(self, what: str, command: str = "run", *more: str) -> list[dict]:
        code, events = self.run(command, *more)
        self.tally.equal(f"{what}: {command} ends with 0 ({events[-1:]})", code, 0)
        return events

    def compare(self, what: str) -> None:
        source = self.source()
        self.tally.equal(f"{what}: there are rows", bool(source), True)
        for reader, read in READERS.items():
            found = rows(read(self.silver), self.columns)
            self.tally.equal(f"{what}: silver has each row once ({reader})", len(found),
                             len(set(found)))
            self.tally.equal(f"{what}: silver is the source ({reader})",
                             sorted(set(found) ^ set(source), key=str), [])

    def reconcile(self, what: str, *more: str, equal: bool) -> dict:
        # What is planted is not on its way: nothing is waited for.
        code, events = self.run("reconcile", "--sample", "1", "--report", os.fspath(self.report),
                                "--capture-wait", "0", *more)
        told = [event for event in events if event.get("event") == "reconciled"]
        if not told:
            self.tally.equal(f"{what}: reconcile tells something ({events[-2:]})", False, True)
            return {}
        self.tally.equal(f"{what}: equal", told[-1]["equal"], equal)
        self.tally.equal(f"{what}: exit code", code, 0 if equal else DIFFERS)
        return told[-1]

    def found(self, run_id: str) -> dict[str, str]:
        """Key to failure of one comparison."""
        report = deltalake.DeltaTable(os.fspath(self.report)).to_pyarrow_table().to_pylist()
        return {row["key"]: row["failure_type"] for row in report
                if row["run_id"] == run_id and row["key"] is not None}


def key_text(**values) -> str:
    return json.dumps(values, separators=(",", ":"))


def overwrite(place: Place, held: list[dict]) -> None:
    """Silver's rows, behind the product's back."""
    table = deltalake.DeltaTable(os.fspath(place.silver))
    schema = pa.schema(table.schema().to_arrow())
    deltalake.write_deltalake(table, pa.Table.from_pylist(held, schema=schema), mode="overwrite")


def fill(simulator: Simulator, name: str, first: int, count: int) -> None:
    values = ", ".join(f"({i}, N'customer {i % 7} é', {i}.0625, '2026-01-02 03:04:05.1234567', N'note {i}')"
                       for i in range(first, first + count))
    simulator.run(f"INSERT dbo.{name} ({', '.join(COLUMNS)}) VALUES {values}")


def work(simulator: Simulator, name: str) -> None:
    for sql in (
        f"UPDATE dbo.{name} SET amount = amount + 1 WHERE id BETWEEN 10 AND 40",
        f"DELETE dbo.{name} WHERE id IN (3, 5, 70)",
        f"UPDATE dbo.{name} SET id = 9001 WHERE id = 9",
        f"UPDATE dbo.{name} SET id = id + 1 WHERE id BETWEEN 210 AND 220",
        f"BEGIN TRAN; DELETE dbo.{name} WHERE id = 20; "
        f"INSERT dbo.{name} (id, customer) VALUES (20, N'again'); COMMIT",
        f"UPDATE dbo.{name} SET customer = NULL WHERE id = 31",
    ):
        simulator.run(sql)
    simulator.capture()


def streamed(place: Place) -> None:
    place.must("bootstrap")
    place.compare("after the bootstrap")
    work(place.simulator, place.name)
    place.must("stream")
    place.compare("after changes")
    has_vectors = bool(list(place.silver.glob("*.bin")))
    place.tally.equal("silver has deletion vectors as it was told", has_vectors,
                      place.name == "orders")
    told = place.must("nothing new", "apply")
    place.tally.equal("an apply with nothing new", told[-1]["window_rows"], 0)
    place.must("optimize", "optimize")
    place.compare("after optimize")
    output = place.pipeline.run("optimize")[1]
    place.tally.equal(f"optimize says that nothing is left ({output})", ": nothing to do (1 files)" in output, True)
    place.tally.equal("optimize leaves one file", len(deltalake.DeltaTable(
        os.fspath(place.silver)).file_uris()), 1)


def finalized(place: Place) -> None:
    events = place.must("finalized", "finalized")
    until = {event["table"]: event["finalized_until"] for event in events}
    place.tally.equal("bronze and silver have one verdict", len(set(until.values())), 1)
    verdict = until[str(place.silver)]
    place.tally.equal("there is a verdict", bool(verdict), True)
    place.must("final", "finalized", "--until", verdict)
    place.tally.equal("not final yet", place.run("finalized", "--until", "2999-01-01T00:00:00")[0], RETRY)
    place.must("advance", "finalized", "--advance")
    away = place.folder / "away"
    for table in (place.silver, place.pipeline.bronze):
        table.rename(away)
        code, events = place.run("finalized", "--until", verdict)
        place.tally.equal(f"{table.name} is not there, so not final ({events[-2:]})",
                          (code, [event["is_final"] for event in events]),
                          (RETRY, [path != table for path in (place.pipeline.bronze, place.silver)]))
        away.rename(table)


def alter_silver(place: Place) -> dict[str, str]:
    """Plants differences; what must be found."""
    held = by_engine(place.silver).to_pylist()
    by_id = {row["id"]: row for row in held}
    by_id.pop(50)
    by_id[777_777] = by_id[51] | {"id": 777_777}
    by_id[52]["customer"] = "somebody"
    by_id[53]["customer"] = ""
    by_id[31]["customer"] = ""  # NULL in the source.
    by_id[54]["amount"] = by_id[54]["amount"] + type(by_id[54]["amount"])("0.0001")
    by_id[55]["placed_at"] = by_id[55]["placed_at"].replace(microsecond=123457)
    by_id[56]["note"] = None
    overwrite(place, list(by_id.values()))
    wanted = {50: "MISSING_TARGET", 777_777: "MISSING_SOURCE"}
    wanted |= {number: "RECORD_DIFF" for number in (31, 52, 53, 54, 55, 56)}
    return {key_text(id=number): kind for number, kind in wanted.items()}


def reconciled(place: Place) -> None:
    tally, simulator = place.tally, place.simulator
    place.reconcile("nothing altered", equal=True)
    wanted = alter_silver(place)
    told = place.reconcile("rows altered", "--bucket-rows", "50", equal=False)
    tally.equal("what was altered is found", place.found(told["run_id"]), wanted)
    tally.equal("no key is printed", "777777" in json.dumps(told), False)
    told = place.reconcile("rows altered, keys shown", "--show-keys", equal=False)
    tally.equal("keys are printed on request", "777777" in json.dumps(told), True)
    # What is newest is applied already: a repair could not be told apart from it.
    code, events = place.run("reconcile", "--sample", "1", "--repair")
    tally.equal("RepairNotYet says so", (code, "MC5105" in json.dumps(events)), (RETRY, True))
    simulator.run("INSERT dbo.other (id) VALUES (1)")
    simulator.capture()
    place.must("up to the newest commit")
    place.reconcile("repair", "--repair", "--bucket-rows", "50", equal=True)
    place.compare("after the repair")
    # Changes after the repair still arrive.
    simulator.run(f"UPDATE dbo.{place.name} SET amount = 1 WHERE id IN (50, 52)")
    simulator.capture()
    # In flight: captured, not read yet.
    place.reconcile("changes in flight", equal=True)
    place.must("after the repair")
    place.compare("changes after the repair")


def not_captured(place: Place) -> None:
    """A commit that capture has not read yet is no difference once it has, and is told apart before."""
    place.simulator.run(f"UPDATE dbo.{place.name} SET amount = amount + 1 WHERE id = 60")
    code, events = place.run("reconcile", "--sample", "1", "--capture-wait", "1")
    told = [event for event in events if event.get("event") == "reconciled"]
    place.tally.equal(f"not captured: compare again ({events[-1:]})",
                      (code, [event["compare_again"] for event in told]), (RETRY, [True]))
    process = place.pipeline.start("reconcile", ("--sample", "1", "--capture-wait", "60"))
    while process.poll() is None:
        place.simulator.capture()
    output = process.communicate(timeout=60)[0]
    place.tally.equal(f"captured meanwhile ({output[-300:]})", process.returncode, 0)
    # Two scans that find nothing tell of a server where nothing happens.
    place.must("after what was not captured")
    held = {row["id"]: row for row in by_engine(place.silver).to_pylist()}
    missing = held.pop(60)
    overwrite(place, list(held.values()))
    process = place.pipeline.start("reconcile", ("--sample", "1", "--capture-wait", "60"))
    while process.poll() is None:
        place.simulator.capture()
    output = process.communicate(timeout=60)[0]
    place.tally.equal(f"really missing ({output[-300:]})", process.returncode, DIFFERS)
    overwrite(place, [*held.values(), missing])


def in_the_hour_that_comes_twice(tally: Tally, program: pathlib.Path, folder: pathlib.Path) -> None:
    """The server's clock goes back from 03:00 to 02:00: a commit at 02:50 is older than a moment at 02:10."""
    folder.mkdir()
    simulator = Simulator(program, folder, "--time-zone", "W. Europe Standard Time", "--clock",
                          "2026-10-25T00:30:00")
    try:
        simulator.create("shop", TABLE.format(name="orders"))
        fill(simulator, "orders", 1, 20)
        simulator.enable("orders")
        place = Place(tally, program, folder, simulator, "orders", COLUMNS)
        simulator.run("EXEC sim.advance_clock 1200000")
        simulator.run("UPDATE dbo.orders SET amount = 1 WHERE id = 1")
        simulator.capture()
        place.must("before the clock goes back")
        simulator.run("EXEC sim.advance_clock 1200000")
        simulator.run("UPDATE dbo.orders SET amount = 2 WHERE id = 1")
        code, events = place.run("reconcile", "--sample", "1", "--capture-wait", "1")
        told = [event["compare_again"] for event in events if event.get("event") == "reconciled"]
        tally.equal(f"after the clock went back: compare again ({events[-1:]})", (code, told), (RETRY, [True]))
    finally:
        simulator.stop()


def write_beside(place: Place, process: subprocess.Popen, seconds: float) -> str:
    """Writes and captures until `process` ends, or for so long; returns what it printed."""
    end, wrote = time.monotonic() + seconds, 0
    while time.monotonic() < end and process.poll() is None:
        place.simulator.run(f"UPDATE dbo.{place.name} SET amount = amount + 1 WHERE id = {100 + wrote % 50}")
        place.simulator.capture()
        wrote += 1
    return process.communicate(timeout=60)[0]


def with_a_writer(place: Place) -> None:
    process = place.pipeline.start("reconcile")
    output = write_beside(place, process, 4)
    place.tally.equal(f"no difference with a writer at work ({output[-300:]})", process.returncode, 0)
    place.must("after the writer")
    place.compare("after the writer")


def kept_fresh(place: Place) -> None:
    """A repair while `run` applies what a writer does."""
    held = {row["id"]: row for row in by_engine(place.silver).to_pylist()}
    held.pop(61)
    held[62]["note"] = "somebody's"
    overwrite(place, [*held.values(), held[63]])
    stream = place.pipeline.start("run", ("--trigger", "continuous"))
    process = place.pipeline.start("reconcile", ("--sample", "1", "--repair"))
    output = write_beside(place, process, 60)
    place.tally.equal(f"a repair of silver that is kept fresh ({output[-600:]})", process.returncode, 0)
    stream.send_signal(signal.SIGTERM)
    place.tally.equal(f"the stream goes on until it is stopped ({stream.communicate(timeout=60)[0][-300:]})",
                      stream.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), True)
    place.must("after the repair of fresh silver")
    place.compare("after the repair of fresh silver")


def killed(place: Place, count: int) -> None:
    dice = random.Random(7)
    for number in range(count):
        place.simulator.run(f"UPDATE dbo.{place.name} SET note = N'kill {number}' WHERE id % 3 = {number % 3}")
        place.simulator.run(f"DELETE dbo.{place.name} WHERE id = {120 + number}")
        place.simulator.capture()
        process = place.pipeline.start("run")
        try:
            process.communicate(timeout=dice.uniform(0.02, 0.4))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    place.must("after kills")
    place.compare(f"after {count} kills")


def of_two_columns(place: Place) -> None:
    simulator = place.simulator
    place.must("composite key")
    place.compare("composite key")
    simulator.run("UPDATE dbo.lines SET price = 7.5 WHERE order_id = 2")
    simulator.run("UPDATE dbo.lines SET sku = 'moved' WHERE order_id = 3 AND sku = 'a'")
    simulator.run("DELETE dbo.lines WHERE order_id = 4")
    simulator.capture()
    place.must("composite key, changes")
    place.compare("composite key, changes")
    place.reconcile("composite key", equal=True)
    held = by_engine(place.silver).to_pylist()
    held[0]["price"] = 99.5
    overwrite(place, held)
    told = place.reconcile("composite key, one altered", equal=False)
    keys = [key_text(order_id=row["order_id"], sku=row["sku"]) for row in held]
    place.tally.equal("composite key: it is found", place.found(told["run_id"]), {keys[0]: "RECORD_DIFF"})
    # Counts differ by a key in flight: what is wrong beside it is found all the same.
    held[0]["price"] = None
    overwrite(place, held[2:] + [held[2] | {"sku": "extra"}])
    simulator.run("INSERT dbo.lines VALUES (77, 'new', 1), (78, 'new', 1)")
    simulator.capture()
    told = place.reconcile("composite key, beside a key in flight", equal=False)
    extra = key_text(order_id=held[2]["order_id"], sku="extra")
    place.tally.equal("composite key: what is wrong is told from what is in flight",
                      place.found(told["run_id"]),
                      {keys[0]: "MISSING_TARGET", keys[1]: "MISSING_TARGET", extra: "MISSING_SOURCE",
                       key_text(order_id=77, sku="new"): "IN_FLIGHT",
                       key_text(order_id=78, sku="new"): "IN_FLIGHT"})


def repaired(place: Place, number: int) -> None:
    place.simulator.run(f"INSERT dbo.other (id) VALUES ({number})")
    place.simulator.capture()
    place.must(f"{place.name}: up to the newest commit")
    place.reconcile(f"{place.name}: repair", "--repair", equal=True)
    place.compare(f"{place.name}: after the repair")


def of_odd_names(place: Place) -> None:
    """Columns with an underscore; rows missing, altered and twice beside a key in flight."""
    place.must("odd names")
    held = {row["_id"]: row for row in by_engine(place.silver).to_pylist()}
    held[3]["_rev"] = "altered"
    held.pop(2)
    overwrite(place, [*held.values(), held[4], held[5], held[5] | {"n": 99}])
    place.simulator.run("INSERT dbo.odd VALUES (50, N'new', 1)")
    place.simulator.capture()
    told = place.reconcile("odd names, altered", equal=False)
    place.tally.equal("odd names: counts alone say nothing", (told["in_flight"], told["mismatch"]), (1, 0))
    wanted = {2: "MISSING_TARGET", 3: "RECORD_DIFF", 4: "MISSING_SOURCE", 5: "MISSING_SOURCE",
              50: "IN_FLIGHT"}
    place.tally.equal("odd names: what was altered is found", place.found(told["run_id"]),
                      {key_text(_id=number): kind for number, kind in wanted.items()})
    place.must("odd names, what was in flight")
    repaired(place, 2)


def of_another_type(place: Place) -> None:
    """The key is written as text."""
    place.must("key of another type")
    place.compare("key of another type")
    place.reconcile("key of another type", equal=True)
    place.simulator.run("UPDATE dbo.typed SET n = 70 WHERE id = 7; INSERT dbo.typed VALUES (90, 1)")
    place.simulator.capture()
    place.reconcile("key of another type, changes in flight", equal=True)
    held = by_engine(place.silver).to_pylist()
    by_id = {row["id"]: row for row in held}
    by_id["3"]["n"] = 99
    by_id.pop("4")
    overwrite(place, list(by_id.values()))
    told = place.reconcile("key of another type, altered", equal=False)
    place.tally.equal("key of another type: what was altered is found", place.found(told["run_id"]),
                      {key_text(id="3"): "RECORD_DIFF", key_text(id="4"): "MISSING_TARGET",
                       key_text(id="7"): "IN_FLIGHT", key_text(id="90"): "IN_FLIGHT"})
    place.must("key of another type, what was in flight")
    repaired(place, 3)


# Keys without a distance, and dates: name, columns, key of row i.
OTHER_KEYS = (
    ("days", "day date NOT NULL PRIMARY KEY", lambda i: f"'{2024 + i // 300}-{i % 12 + 1:02}-{i % 28 + 1:02}'"),
    ("codes", "code nvarchar(20) NOT NULL PRIMARY KEY", lambda i: f"N'{'aBcÉ'[i % 4]}{i:03}'"),
    ("moments", "at datetime2(3) NOT NULL PRIMARY KEY",
     lambda i: f"'2026-0{i % 9 + 1}-15 10:20:{i % 60:02}.{i * 7 % 1000:03}'"),
    ("pairs", "a smallint NOT NULL, b varchar(9) NOT NULL, CONSTRAINT pk_pairs PRIMARY KEY (a, b)",
     lambda i: f"{i % 7}, '{i:03}'"),
)


def of_other_keys(tally: Tally, program, folder: pathlib.Path, simulator: Simulator) -> None:
    """Every kind of difference, planted where keys are no whole numbers, in several ranges."""
    simulator.run("USE shop")
    for name, columns, key in OTHER_KEYS:
        simulator.run(f"CREATE TABLE dbo.{name} ({columns}, note nvarchar(20) NULL, n float NULL)")
        notes = ["NULL" if i % 5 == 0 else f"N'note {i}'" for i in range(60)]
        rows = ", ".join(f"({key(i)}, {note}, {i})" for i, note in enumerate(notes))
        simulator.run(f"INSERT dbo.{name} VALUES {rows}")
        simulator.enable(name)
    for name, columns, _ in OTHER_KEYS:
        keys = ["a", "b"] if name == "pairs" else [columns.split()[0]]
        place = Place(tally, program, folder, simulator, name, [*keys, "note", "n"])
        place.must(f"{name}: bootstrap")
        told = place.reconcile(f"{name}: nothing altered", "--bucket-rows", "10", equal=True)
        tally.equal(f"{name}: all ranges were compared", told["hashed"] > 4, True)
        held = sorted(by_engine(place.silver).to_pylist(), key=lambda row: row["n"])
        wanted = {}
        for number, kind in ((7, "MISSING_TARGET"), (8, "RECORD_DIFF"), (10, "RECORD_DIFF"),
                             (33, "RECORD_DIFF")):
            text = {k: plain(held[number][k]) if k != "a" else held[number][k] for k in keys}
            if name == "moments":
                text["at"] = held[number]["at"].isoformat(" ", "microseconds")
            wanted[json.dumps(text, ensure_ascii=False, separators=(",", ":"))] = kind
        extra = held[9] | ({"b": "extra"} if name == "pairs" else
                           {keys[0]: "extra" if name == "codes" else
                            held[9][keys[0]].replace(year=2031)})
        text = {k: plain(extra[k]) if k != "a" else extra[k] for k in keys}
        if name == "moments":
            text["at"] = extra["at"].isoformat(" ", "microseconds")
        wanted[json.dumps(text, ensure_ascii=False, separators=(",", ":"))] = "MISSING_SOURCE"
        held[8]["note"] = "somebody's"
        held[10]["note"] = ""  # NULL in the source.
        held[33]["n"] += 0.5
        altered = [row for number, row in enumerate(held) if number != 7] + [extra]
        table = deltalake.DeltaTable(os.fspath(place.silver))
        deltalake.write_deltalake(table, pa.Table.from_pylist(
            altered, schema=pa.schema(table.schema().to_arrow())), mode="overwrite")
        told = place.reconcile(f"{name}: rows altered", "--bucket-rows", "10", equal=False)
        tally.equal(f"{name}: what was altered is found", place.found(told["run_id"]), wanted)
        simulator.run(f"INSERT dbo.other (id) VALUES ({100 + len(name) * 10 + ord(name[0])})")
        simulator.capture()
        place.must(f"{name}: up to the newest commit")
        place.reconcile(f"{name}: repair", "--repair", "--bucket-rows", "10", equal=True)
        place.compare(f"{name}: after the repair")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=15)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-silver-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            simulator.create("shop", TABLE.format(name="orders"), TABLE.format(name="plain"), LINES, ODD, TYPED,
                             "CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)")
            for table in ("orders", "plain"):
                fill(simulator, table, 1, 220)
            for order in range(1, 6):
                simulator.run(f"INSERT dbo.lines VALUES ({order}, 'a', 1.25), ({order}, 'b', NULL)")
            simulator.run("INSERT dbo.odd VALUES " + ", ".join(f"({i}, N'rev {i}', {i})" for i in range(1, 9)))
            simulator.run("INSERT dbo.typed VALUES " + ", ".join(f"({i}, {i})" for i in range(1, 9)))
            for table in ("orders", "plain", "lines", "odd", "typed", "other"):
                simulator.enable(table)
            simulator.capture()
            for table, vectors in (("orders", True), ("plain", False)):
                place = Place(tally, args.program, folder, simulator, table, COLUMNS,
                              deletionVectors=vectors)
                streamed(place)
                finalized(place)
                if vectors:
                    reconciled(place)
                    not_captured(place)
                    with_a_writer(place)
                    kept_fresh(place)
                    killed(place, args.kills)
            of_two_columns(Place(tally, args.program, folder, simulator, "lines",
                                 ["order_id", "sku", "price"]))
            of_odd_names(Place(tally, args.program, folder, simulator, "odd", ["_id", "_rev", "n"]))
            of_another_type(Place(tally, args.program, folder, simulator, "typed", ["id", "n"],
                                  columns="id STRING, n INT"))
            of_other_keys(tally, args.program, folder, simulator)
        finally:
            simulator.stop()
        in_the_hour_that_comes_twice(tally, args.program, folder / "twice")
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
