"""What clients do besides reading a table: parameters, prepared statements, long values, the
catalogue, transactions, cancelling. Each client does what it has of this list with its own
means and says what it got; the answers are the same for all.

A client's exercises are a program that prints one JSON array a line: [name, text]. It reads
its settings from the environment like the readers of the table.
"""


import adapters_odbc
import adapters_programs
import dev_paths
from adapters import HERE, Server, from_child

EXPECTED = {
    "parameters": "5|ü日|0x01|NULL|12.34|2024-02-29",
    "prepared": "0,2,4",  # One statement, executed three times.
    "long": "200000|100000",  # DATALENGTH of a text of 100000 characters and of bytes.
    "tables": "all_types",
    "columns": "41",
    "key": "id",
    "types": "37",  # Rows of sp_datatype_info.
    "procedures": "0",
    "rollback": "0",  # Rows after INSERT and ROLLBACK.
    "savepoint": "1",  # After INSERT, savepoint, INSERT, back to the savepoint.
    "cancelled": "yes",  # A statement that would run for minutes.
    "after cancel": "8",
    "left unread": "9",  # The next answer after rows of which only the first was read.
    "error": "208",
}
# Exercises that a client has no means for, and why.
LEFT_OUT = {
    "pyodbc": {"savepoint": "ODBC has no savepoints"},
    "mssql-jdbc": {},
    "tedious": {name: "tedious has no catalogue functions"
                for name in ("tables", "columns", "key", "types", "procedures")}
               | {"left unread": "a request of tedious ends by being read or cancelled"},
}


def odbc(adapter):
    """Runs the exercises of pyodbc over the driver that `adapter` sets up."""

    def run(server: Server, mode: str):
        return adapter(server, mode, [], "exercises/odbc.py")

    return run


def jdbc(server: Server, mode: str):
    classes = adapters_programs.java_classes("exercises/Exercises.java")
    return from_child(["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Exercises"],
                      adapters_programs.settings(server, mode, []))


def tedious(server: Server, mode: str):
    environment = adapters_programs.settings(server, mode, [])
    environment["NODE_PATH"] = str(dev_paths.cache() / "node" / "node_modules")
    return from_child(["node", HERE / "exercises/tedious.js"], environment)


# (name, its list in LEFT_OUT, function, mode)
CLIENTS = [
    ("Microsoft ODBC 18 by pyodbc", "pyodbc", odbc(adapters_odbc.pyodbc_microsoft), "tls"),
    ("FreeTDS ODBC by pyodbc", "pyodbc", odbc(adapters_odbc.pyodbc_freetds), "clear"),
    ("mssql-jdbc", "mssql-jdbc", jdbc, "login only"),
    ("tedious", "tedious", tedious, "clear"),
]
