"""Reads the table through mssql-python; prints a row of canonical texts a line, as JSON."""

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
adapters.print_rows(session)
