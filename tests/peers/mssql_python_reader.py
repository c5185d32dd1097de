"""Reads one query through mssql-python; prints a row of canonical texts a line, as JSON."""

import json
import os
import sys

import adapters

try:
    import mssql_python
except ImportError as absent:
    print(f"mssql-python ({absent})", file=sys.stderr)
    sys.exit(3)

mssql_python.pooling(enabled=False)
session = mssql_python.connect(os.environ["PEER_CONNECTION"], autocommit=True)
cursor = session.cursor()
cursor.execute(os.environ["PEER_QUERY"])
for row in adapters.texts(cursor.fetchall()):
    print(json.dumps(row))
