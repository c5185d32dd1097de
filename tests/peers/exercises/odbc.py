"""The exercises (tests/peers/exercises.py) by pyodbc."""

import os

import pyodbc
from python_values import EVERY_TYPE, MANY, PARAMETERS, RAISE, every_type, row_text, say


def one(cursor) -> str:
    return str(cursor.fetchone()[0])


pyodbc.pooling = False
session = pyodbc.connect(os.environ["PEER_CONNECTION"], autocommit=True)
cursor = session.cursor()
say("parameters", row_text(cursor.execute("SELECT ? + 1, ?, ?, CAST(? AS int), ?, ?",
                                          *PARAMETERS).fetchone()))
say("every type", one(cursor.execute(every_type("?"), *EVERY_TYPE)))
say("prepared", ",".join(one(cursor.execute("SELECT ? * 2", number)) for number in range(3)))
say("long", row_text(cursor.execute("SELECT DATALENGTH(?), DATALENGTH(?)", "ü" * 100000,
                                    b"y" * 100000).fetchone()))
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
cursor.execute("INSERT #t VALUES (1)")
session.commit()
session.rollback()
say("commit", one(cursor.execute("SELECT COUNT(*) FROM #t")))
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
unread = session.execute(MANY)
unread.fetchone()
unread.close()
say("left unread", one(session.execute("SELECT 9")))
try:
    session.execute("SELECT * FROM dbo.no_such_table")
except pyodbc.Error as failure:
    say("error", "208" if "(208)" in str(failure) or failure.args[0] == "42S02" else failure)
try:
    session.execute(RAISE)
except pyodbc.Error:
    say("after error", one(session.execute("SELECT 7")))
