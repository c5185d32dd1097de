"""The exercises (tests/peers/exercises.py) by pyodbc."""

import datetime
import decimal
import json
import os

import pyodbc


def say(name: str, text) -> None:
    print(json.dumps([name, str(text)]), flush=True)


def one(cursor) -> str:
    return str(cursor.fetchone()[0])


pyodbc.pooling = False
session = pyodbc.connect(os.environ["PEER_CONNECTION"], autocommit=True)
cursor = session.cursor()
row = cursor.execute("SELECT ? + 1, ?, ?, CAST(? AS int), ?, ?", 4, "ü日", b"\x01", None,
                     decimal.Decimal("12.34"), datetime.date(2024, 2, 29)).fetchone()
say("parameters", "|".join("NULL" if value is None else
                           f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
                           for value in row))
say("prepared", ",".join(one(cursor.execute("SELECT ? * 2", number)) for number in range(3)))
say("long", "|".join(str(value) for value in cursor.execute(
    "SELECT DATALENGTH(?), DATALENGTH(?)", "x" * 100000, b"y" * 100000).fetchone()))
say("tables", ",".join(row.table_name for row in cursor.tables(table="all%", schema="dbo")))
say("columns", len(cursor.columns(table="all_types").fetchall()))
say("key", ",".join(row.column_name for row in cursor.primaryKeys(table="all_types")))
say("types", len(cursor.getTypeInfo().fetchall()))
say("procedures", len(cursor.procedures().fetchall()))
cursor.execute("CREATE TABLE #t (a int)")
session.autocommit = False
cursor.execute("INSERT #t VALUES (1)")
session.rollback()
say("rollback", one(cursor.execute("SELECT COUNT(*) FROM #t")))
session.commit()
session.autocommit = True
cursor.close()
session.timeout = 1
try:
    session.execute("WAITFOR DELAY '00:10:00'")
    say("cancelled", "no")
except pyodbc.Error:
    say("cancelled", "yes")
session.timeout = 0
say("after cancel", one(session.execute("SELECT 8")))
unread = session.execute("SELECT a.id FROM dbo.all_types a CROSS JOIN dbo.all_types b "
                         "CROSS JOIN dbo.all_types c CROSS JOIN dbo.all_types d")
unread.fetchone()
unread.close()
say("left unread", one(session.execute("SELECT 9")))
try:
    session.execute("SELECT * FROM dbo.no_such_table")
except pyodbc.Error as failure:
    say("error", "208" if "(208)" in str(failure) or failure.args[0] == "42S02" else failure)
