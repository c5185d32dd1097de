"""The exercises (tests/peers/exercises.py) by python-tds, pymssql or mssql-python, whichever
the command line names."""

import os
import sys

from python_values import EVERY_TYPE, MANY, PARAMETERS, RAISE, every_type, row_text, say

HOST, PORT = os.environ["PEER_HOST"], int(os.environ["PEER_PORT"])
USER, PASSWORD = os.environ["PEER_USER"], os.environ["PEER_PASSWORD"]
DATABASE, MODE = os.environ["PEER_DATABASE"], os.environ["PEER_MODE"]


class Driver:
    """What the drivers have in common: the DB-API, by calls and T-SQL."""

    mark = "%s"
    cancels = True

    def connect(self, seconds_max: int):
        raise NotImplementedError

    def catalogue(self, session) -> None:
        """By the procedures that drivers with catalogue functions call."""

        def called(procedure: str, *parameters) -> list:
            cursor = session.cursor()
            self.call(cursor, procedure, parameters)
            return cursor.fetchall()

        say("tables", ",".join(row[2] for row in called("sp_tables", "all%", "dbo")))
        say("columns", len(called("sp_columns", "all_types")))
        say("key", ",".join(row[3] for row in called("sp_pkeys", "all_types")))
        say("types", len(called("sp_datatype_info")))
        say("procedures", len(called("sp_stored_procedures")))

    def call(self, cursor, procedure: str, parameters: tuple) -> None:
        cursor.callproc(procedure, parameters)

    def own(self, parameters: tuple) -> tuple:
        """The parameters as the driver wants them."""
        return parameters

    def number(self, failure) -> int:
        raise NotImplementedError

    def told(self, failure) -> str | None:
        raise NotImplementedError


class PythonTds(Driver):
    def connect(self, seconds_max: int):
        import pytds

        return pytds.connect(HOST, port=PORT, user=USER, password=PASSWORD,
                             database=DATABASE, autocommit=True, timeout=seconds_max)

    def own(self, parameters: tuple) -> tuple:
        import pytds

        return tuple(pytds.Binary(value) if isinstance(value, bytes) else value
                     for value in parameters)

    def number(self, failure) -> int:
        return failure.msg_no

    def told(self, failure) -> str:
        return f"{failure.msg_no}|{failure.severity}|{failure.state}|{failure.line}"


class Pymssql(Driver):
    cancels = False

    def own(self, parameters: tuple) -> tuple:
        # bytes are text to it.
        return tuple(bytearray(value) if isinstance(value, bytes) else value
                     for value in parameters)

    def connect(self, seconds_max: int):
        import pymssql

        return pymssql.connect(HOST, USER, PASSWORD, DATABASE, port=str(PORT),
                               tds_version="7.4", charset="UTF-8", encryption="off",
                               autocommit=True, timeout=seconds_max)

    def call(self, cursor, procedure: str, parameters: tuple) -> None:
        # Its callproc takes a result without rows for none.
        marks = ", ".join("%s" for _ in parameters)
        cursor.execute(f"EXEC {procedure} {marks}", parameters)

    def number(self, failure) -> int:
        return failure.args[0]

    def told(self, failure) -> str:
        # pymssql hands on number and text; what DB-Library said is the cause.
        said = failure.__context__
        return f"{said.number}|{said.severity}|{said.state}|{said.line}"


class MssqlPython(Driver):
    mark = "?"

    def connect(self, seconds_max: int):
        import mssql_python

        mssql_python.pooling(enabled=False)
        spelled = {"login only": "no", "tls": "yes", "strict": "strict"}[MODE]
        host = "localhost" if HOST == "127.0.0.1" else HOST
        session = mssql_python.connect(
            f"Server={host},{PORT};Database={DATABASE};UID={USER};PWD={{{PASSWORD}}};"
            f"Encrypt={spelled};", autocommit=True)
        session.timeout = seconds_max
        return session

    def catalogue(self, session) -> None:
        def found(function: str, **words) -> list:
            cursor = session.cursor()
            return list(getattr(cursor, function)(**words).fetchall())

        say("tables", ",".join(row.table_name for row in found("tables", table="all%",
                                                               schema="dbo")))
        say("columns", len(found("columns", table="all_types")))
        say("key", ",".join(row.column_name for row in found("primaryKeys",
                                                             table="all_types")))
        say("types", len(found("getTypeInfo")))
        say("procedures", len(found("procedures")))

    def number(self, failure) -> int | str:
        # It names the SQLSTATE's meaning and the server's text, without the number.
        return 208 if "Invalid object name 'dbo.no_such_table'" in str(failure) else str(failure)

    def told(self, failure) -> None:
        return None


def one(session, sql: str, parameters=None):
    cursor = session.cursor()
    cursor.execute(*([sql] if parameters is None else [sql, parameters]))
    value = cursor.fetchone()[0]
    cursor.close()
    return value


def parameters(driver: Driver, session) -> None:
    mark = driver.mark
    cursor = session.cursor()
    cursor.execute(f"SELECT {mark} + 1, {mark}, {mark}, CAST({mark} AS int), {mark}, {mark}",
                   driver.own(PARAMETERS))
    say("parameters", row_text(cursor.fetchone()))
    cursor.close()
    say("every type", one(session, every_type(mark), driver.own(EVERY_TYPE)))
    say("prepared", ",".join(str(one(session, f"SELECT {mark} * 2", (number,)))
                             for number in range(3)))
    cursor = session.cursor()
    cursor.execute(f"SELECT DATALENGTH({mark}), DATALENGTH({mark})",
                   driver.own(("ü" * 100000, b"y" * 100000)))
    say("long", row_text(cursor.fetchone()))
    cursor.close()


def transactions(session) -> None:
    def run(sql: str) -> None:
        cursor = session.cursor()
        cursor.execute(sql)
        cursor.close()

    def count() -> int:
        return one(session, "SELECT COUNT(*) FROM #t")

    def set_autocommit(on: bool) -> None:
        # pymssql has a method, the others have an attribute.
        if callable(session.autocommit):
            session.autocommit(on)
        else:
            session.autocommit = on

    run("CREATE TABLE #t (a int)")
    set_autocommit(False)
    run("INSERT #t VALUES (1)")
    session.rollback()
    say("rollback", count())
    run("INSERT #t VALUES (1)")
    session.commit()
    session.rollback()
    say("commit", count())
    run("INSERT #t VALUES (2)")
    run("SAVE TRANSACTION kept")
    run("INSERT #t VALUES (3)")
    run("ROLLBACK TRANSACTION kept")
    session.commit()
    say("savepoint", count())
    session.commit()
    set_autocommit(True)


def cancelling(driver: Driver) -> None:
    session = driver.connect(1)
    cursor = session.cursor()
    try:
        cursor.execute("WAITFOR DELAY '00:10:00'")
        say("cancelled", "no")
    except Exception:  # Each driver has a class of its own for a timeout.
        say("cancelled", "yes")
    say("after cancel", one(session, "SELECT 8"))
    session.close()


def errors(driver: Driver, session) -> None:
    cursor = session.cursor()
    cursor.execute(MANY)
    cursor.fetchone()
    cursor.close()
    say("left unread", one(session, "SELECT 9"))
    try:
        one(session, "SELECT * FROM dbo.no_such_table")
    except Exception as failure:  # Each driver has its own classes.
        say("error", driver.number(failure))
    try:
        cursor = session.cursor()
        cursor.execute(RAISE)
    except Exception as failure:  # As above.
        if (said := driver.told(failure)) is not None:
            say("told", said)
    say("after error", one(session, "SELECT 7"))


def main(name: str) -> None:
    driver = {"python-tds": PythonTds, "pymssql": Pymssql, "mssql-python": MssqlPython}[name]()
    try:
        session = driver.connect(60)
    except ImportError as absent:
        print(f"{name} ({absent})", file=sys.stderr)
        sys.exit(3)
    parameters(driver, session)
    driver.catalogue(session)
    transactions(session)
    errors(driver, session)
    session.close()
    if driver.cancels:
        cancelling(driver)


main(sys.argv[1])
