"""What clients do besides reading a table: parameters of every type, prepared statements, long
values, the catalogue, transactions, errors, cancelling. Each client does what it has of this
list with its own means and says what it got; the answers are the same for all.

A client's exercises are a program that prints one JSON array a line: [name, text]. It reads
its settings from the environment like the readers of the table; PEER_EVERY_TYPE is a query
with the places {1} to {10} for parameters of its own types.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import adapters
import adapters_odbc
import adapters_programs
import dev_paths
from adapters import HERE, Missing, Server, from_child

EXPECTED = {
    "parameters": "5|ü日|0x01|NULL|12.34|2024-02-29",
    "every type": "1111111111",  # A 1 for each parameter that is the literal beside it.
    "prepared": "0,2,4",  # One statement, executed three times.
    "long": "200000|100000",  # DATALENGTH of a text of 100000 characters and of bytes.
    "tables": "all_types",
    "columns": "41",
    "key": "id",
    "types": "37",  # Rows of sp_datatype_info.
    "procedures": "0",
    "rollback": "0",  # Rows after INSERT and ROLLBACK.
    "commit": "1",  # Rows after INSERT, COMMIT and an empty ROLLBACK.
    "savepoint": "2",  # After another INSERT, savepoint, INSERT, back to the savepoint.
    "cancelled": "yes",  # A statement that would run for minutes.
    "after cancel": "8",
    "left unread": "9",  # The next answer after rows of which only the first was read.
    "error": "208",
    "told": "50000|12|7|3",  # Number, severity, state and line of a RAISERROR.
    "after error": "7",
}
LITERALS = [
    "CAST(9007199254740993 AS bigint)", "CAST(1 AS bit)", "CAST(0.1 AS float)",
    "CAST(1234.5 AS decimal(9, 1))", "CAST('2024-02-29' AS date)",
    "CAST('23:59:58' AS time(0))", "CAST('2024-02-29T23:59:58.123' AS datetime2(3))",
    "CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier)",
    "N'Ωü日'", "0x00FF7F",
]
EVERY_TYPE = "SELECT " + " + ".join(
    f"CASE WHEN {{{place}}} = {literal} THEN '1' ELSE '0' END"
    for place, literal in enumerate(LITERALS, 1))
CATALOGUE = ("tables", "columns", "key", "types", "procedures")
# Exercises that a client has no means for, and why.
LEFT_OUT = {
    "pyodbc": {"savepoint": "ODBC has no savepoints",
               "told": "ODBC says number and text only"},
    "mssql-python": {"told": "ODBC says number and text only"},
    "mssql-jdbc": {},
    "tedious": {name: "tedious has no catalogue functions" for name in CATALOGUE}
               | {"left unread": "a request of tedious ends by being read or cancelled"},
    "python-tds": {},
    "pymssql": {name: "DB-Library closes the connection at its time limit"
                for name in ("cancelled", "after cancel")},
    "go-mssqldb": {},
    # Seen: "Never got a DONE token acknowledging the Attention signal". JDBC and tedious need the
    # acknowledgement in a message of its own.
    "tiberius": {name: "tiberius reads for an acknowledgement no further than the message in hand"
                 for name in ("cancelled", "after cancel")},
    "tsql": {name: "tsql has neither parameters nor functions" for name in
             ("parameters", "every type", "prepared", "long", "left unread", *CATALOGUE)}
            | {name: "tsql cancels at a key only" for name in ("cancelled", "after cancel")},
}


def settings(server: Server, mode: str) -> dict[str, str]:
    return adapters_programs.settings(server, mode, []) | {"PEER_EVERY_TYPE": EVERY_TYPE}


def odbc(adapter):
    """Runs the exercises of pyodbc over the driver that `adapter` sets up."""

    def run(server: Server, mode: str):
        os.environ["PEER_EVERY_TYPE"] = EVERY_TYPE  # The adapters hand on ours.
        return adapter(server, mode, [], "exercises/odbc.py")

    return run


def python_driver(name: str):
    def run(server: Server, mode: str):
        return from_child([sys.executable, HERE / "exercises/python_drivers.py", name],
                          settings(server, mode))

    return run


def mssql_python(core: str):
    def run(server: Server, mode: str):
        environment = settings(server, mode) | {"MSSQL_PYTHON_NATIVE_PROVIDER": core}
        if server.authority_pem:
            environment["SSL_CERT_FILE"] = server.authority_pem
        return from_child(
            [sys.executable, HERE / "exercises/python_drivers.py", "mssql-python"], environment)

    return run


def jdbc(server: Server, mode: str):
    classes = adapters_programs.java_classes("exercises/Exercises.java")
    return from_child(["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Exercises"],
                      settings(server, mode))


def tedious(server: Server, mode: str):
    environment = settings(server, mode)
    environment["NODE_PATH"] = str(dev_paths.cache() / "node" / "node_modules")
    return from_child(["node", HERE / "exercises/tedious.js"], environment)


def go_mssqldb(server: Server, mode: str):
    return from_child([adapters_programs.go_program(), adapters_programs.go_dsn(server, mode)],
                      settings(server, mode))


def tiberius(server: Server, mode: str):
    return from_child([adapters_programs.tiberius_program(), "exercises"],
                      settings(server, mode))


TSQL_SCRIPT = """\
CREATE TABLE #t (a int)
go
BEGIN TRANSACTION INSERT #t VALUES (1) ROLLBACK
SELECT 'rollback', COUNT(*) FROM #t
go
BEGIN TRANSACTION
INSERT #t VALUES (1)
COMMIT
SELECT 'commit', COUNT(*) FROM #t
go
BEGIN TRANSACTION
INSERT #t VALUES (2)
SAVE TRANSACTION kept
INSERT #t VALUES (3)
ROLLBACK TRANSACTION kept
COMMIT
SELECT 'savepoint', COUNT(*) FROM #t
go
SELECT * FROM dbo.no_such_table
go


RAISERROR(N'told', 12, 7)
go
SELECT 'after error', 7
go
exit
"""
TSQL_ERROR = re.compile(r"Msg (\d+) \(severity (\d+), state (\d+)\).* Line (\d+)")


def tsql(server: Server, mode: str):
    if not shutil.which("tsql"):
        raise Missing("FreeTDS tsql (Debian package freetds-bin)")
    with tempfile.TemporaryDirectory() as folder:
        environment = adapters_programs.freetds_environment(folder, server, mode)
        done = subprocess.run(
            ["tsql", "-S", "peer", "-U", server.user, "-P", server.password,
             "-D", server.database, "-o", "fhq", "-t", "|", "-r", "\n"],
            input=TSQL_SCRIPT, capture_output=True, text=True,
            timeout=adapters.CLIENT_SECONDS_MAX, env=environment)
    said = [line.split("|") for line in done.stdout.splitlines() if line.count("|") == 1]
    errors = TSQL_ERROR.findall(done.stdout + done.stderr)
    if len(errors) == 2:
        said += [["error", errors[0][0]], ["told", "|".join(errors[1])]]
    return said


# (name, its list in LEFT_OUT, function, mode)
CLIENTS = [
    ("Microsoft ODBC 18 by pyodbc", "pyodbc", odbc(adapters_odbc.pyodbc_microsoft), "tls"),
    ("FreeTDS ODBC by pyodbc", "pyodbc", odbc(adapters_odbc.pyodbc_freetds), "clear"),
    ("Microsoft ODBC 18 by mssql-python", "mssql-python", mssql_python("msodbcsql18"), "strict"),
    ("mssql-python-rs", "mssql-python", mssql_python("mssql-odbc"), "tls"),
    ("python-tds", "python-tds", python_driver("python-tds"), "clear"),
    ("pymssql", "pymssql", python_driver("pymssql"), "clear"),
    ("FreeTDS tsql", "tsql", tsql, "clear"),
    ("go-mssqldb", "go-mssqldb", go_mssqldb, "tls"),
    ("mssql-jdbc", "mssql-jdbc", jdbc, "login only"),
    ("tedious", "tedious", tedious, "clear"),
    ("tiberius", "tiberius", tiberius, "clear"),
]
