"""`./dev peers`: other people's drivers log in to the simulator and read the table of values.

Each peer reads the table in each kind of encryption that it can do; each column of a reading
is one test, and so is each login. What a client cannot do by itself is listed in limits.json
with its evidence; a limit that is not needed any more fails too. A client that is not on
this machine fails by name. With MSSQL_CDC_TEST_SERVER=host:port (and MSSQL_CDC_TEST_USER,
MSSQL_CDC_TEST_PASSWORD, MSSQL_CDC_TEST_CA for its authority's PEM file) the same runs against
that server, in a database `peers`. The last line is `N passed, N failed`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile

import adapters
import adapters_odbc
import adapters_programs
import exercises
import values
from adapters import Missing, Server

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATABASE = "peers"
PEERS = [*adapters_programs.peer_list(), *adapters.peer_list(), *adapters_odbc.peer_list()]


class Tally:
    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self.missing: set[str] = set()

    def check(self, good: bool, what: str) -> None:
        if good:
            self.passed += 1
        else:
            self.failures.append(what)
            print("failed:", what, flush=True)


@contextlib.contextmanager
def simulator(program: pathlib.Path):
    """A simulator of our own with the table of values in it."""
    with tempfile.TemporaryDirectory() as folder:
        init = pathlib.Path(folder) / "init.sql"
        statements = [f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *values.script()]
        init.write_text("\nGO\n".join(statements) + "\nGO\n")
        password = secrets.token_hex(8) + "Aa1!"
        state = pathlib.Path(folder) / "state"
        process = subprocess.Popen(
            [program, "simulate", "--state", state, "--port", "0", "--init", init],
            env=dict(os.environ, MSSQL_CDC_SIM_PASSWORD=password),
            stdout=subprocess.PIPE, text=True)
        try:
            lines = []
            for line in process.stdout:
                lines.append(line.strip())
                if "listening on" in line:
                    break
            else:
                raise SystemExit("the simulator did not start: " + " / ".join(lines))
            authority = next((word for line in lines for word in line.split()
                              if word.endswith(".pem")), None)
            port = int(lines[-1].rsplit(":", 1)[1])
            yield Server("127.0.0.1", port, "sa", password, DATABASE, authority)
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def test_server(named: str):
    """The server of MSSQL_CDC_TEST_SERVER (host:port), with the table made in a database of
    its own through python-tds."""
    import pytds

    host, port = named.rsplit(":", 1)
    server = Server(host, int(port), os.environ.get("MSSQL_CDC_TEST_USER", "sa"),
                    os.environ["MSSQL_CDC_TEST_PASSWORD"], DATABASE,
                    os.environ.get("MSSQL_CDC_TEST_CA"))
    with pytds.connect(host, port=server.port, user=server.user, password=server.password,
                       database="master", autocommit=True,
                       cafile=server.authority_pem) as session:
        with session.cursor() as cursor:
            cursor.execute(f"IF DB_ID(N'{DATABASE}') IS NULL CREATE DATABASE {DATABASE}")
            cursor.execute(f"USE {DATABASE}")
            cursor.execute(f"DROP TABLE IF EXISTS {values.TABLE}")
            for statement in values.script():
                cursor.execute(statement)
    yield server


class Limits:
    """What clients cannot do by themselves: rules for cells, each of which must be needed."""

    def __init__(self) -> None:
        self.entries = json.loads((HERE / "limits.json").read_text())
        self.needed = [False] * len(self.entries)

    def unreadable(self, peer: str) -> list[tuple[str, int]]:
        """The columns that the peer cannot read at all, each with the number of its entry."""
        return [(column, index) for index, entry in enumerate(self.entries)
                if entry["peer"] == peer and entry["rule"] == "unreadable"
                for column in entry["columns"]]

    def rule(self, peer: str, column: str, row: str) -> tuple[str | None, int | None]:
        for index, entry in enumerate(self.entries):
            if (entry["peer"] == peer and column in entry["columns"]
                    and row in entry.get("rows", values.ROWS)):
                return entry["rule"], index
        return None, None


def compare(tally: Tally, limits: Limits, peer: str, mode: str, columns, rows) -> None:
    """Each column of one reading in one form of rows is one test."""
    known = values.read_rows()
    for form in values.FORMS:
        for index, column in enumerate(columns):
            wrong = []
            for (row, its_form), cells in zip(known, rows, strict=True):
                if its_form == form:
                    wrong += wrong_cell(limits, peer, column, row, form, cells[index])
            tally.check(not wrong, f"{peer} ({mode}, {form}) {column.name} {column.type}: "
                                   + "; ".join(wrong))


def wrong_cell(limits: Limits, peer: str, column, row: str, form: str, got) -> list[str]:
    """What is wrong with a cell, if anything; a limit that excuses it is marked as needed."""
    expected = values.expected(column, row, form)
    if values.same(column, expected, got, None):
        return []
    rule, entry = limits.rule(peer, column.name, row)
    if rule == "differs" or rule and values.same(column, expected, got, rule):
        limits.needed[entry] = True
        return []
    return [f"{row} is {got!r:.80}, not {expected!r:.80}"]


def run_peer(tally: Tally, limits: Limits, server: Server, name: str, adapter, mode: str):
    left_out = dict(limits.unreadable(name))
    columns = [column for column in values.columns() if column.name not in left_out]
    try:
        rows = adapter(server, mode, columns)
    except Missing as absent:
        tally.missing.add(str(absent))
        tally.check(False, f"{name} ({mode}) is missing: {absent}")
        return
    except Exception as failure:  # Whatever a driver throws is that peer's failure.
        tally.check(False, f"{name} ({mode}): {type(failure).__name__}: {failure}")
        return
    row_count = len(values.read_rows())
    tally.check(len(rows) == row_count,
                f"{name} ({mode}): {len(rows)} rows, not {row_count}")
    if len(rows) == row_count:
        compare(tally, limits, name, mode, columns, rows)
    for column in values.columns():
        if column.name in left_out:
            try:
                adapter(server, mode, [column])
            except Exception:  # That it fails is what the limit says.
                limits.needed[left_out[column.name]] = True
    print(f"{name} ({mode}) has read the table", flush=True)


def exercise(tally: Tally, server: Server, name: str, left_out, run, mode: str) -> None:
    """What a client does besides reading; each exercise is one test."""
    expected = {what: answer for what, answer in exercises.EXPECTED.items()
                if what not in left_out}
    try:
        got = dict(run(server, mode))
    except Missing as absent:
        tally.missing.add(str(absent))
        tally.check(False, f"{name} exercises are missing: {absent}")
        return
    except Exception as failure:  # Whatever a driver throws is that peer's failure.
        tally.check(False, f"{name} exercises: {type(failure).__name__}: {failure}")
        return
    for what in {**expected, **got}:
        tally.check(got.get(what) == expected.get(what),
                    f"{name}, exercise {what}: {got.get(what)}, not {expected.get(what)}")
    print(f"{name} has done its exercises", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev peers", description=__doc__)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/mssql-cdc")
    parser.add_argument("--only", help="a part of a peer's name")
    given = parser.parse_args()
    tally, limits = Tally(), Limits()
    named = os.environ.get("MSSQL_CDC_TEST_SERVER")
    chosen = [peer for peer in PEERS
              if not given.only or given.only.lower() in peer[0].lower()]
    with test_server(named) if named else simulator(given.program) as server:
        for name, adapter, modes in chosen:
            for mode in modes:
                run_peer(tally, limits, server, name, adapter, mode)
        for name, listed, run, mode in exercises.CLIENTS:
            if not given.only or given.only.lower() in name.lower():
                exercise(tally, server, name, exercises.LEFT_OUT[listed], run, mode)
    for entry, needed in zip(limits.entries, limits.needed):
        if entry["peer"] in [name for name, _, _ in chosen] and not named:
            tally.check(needed, f"the limit {entry} is not needed")
    if tally.missing:
        print("missing clients:", "; ".join(sorted(tally.missing)))
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
