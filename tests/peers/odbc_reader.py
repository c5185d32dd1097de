"""Reads the table through pyodbc; prints a row of canonical texts a line, as JSON."""

import datetime
import os
import struct
import sys

import adapters

try:
    import pyodbc
except ImportError as absent:
    print(f"pyodbc ({absent})", file=sys.stderr)
    sys.exit(3)

SQL_SS_TIMESTAMPOFFSET = -155  # Not known to pyodbc; its bytes are SQL_SS_TIMESTAMPOFFSET_STRUCT.


def offset_moment(raw: bytes) -> datetime.datetime:
    year, month, day, hour, minute, second, nanosecond, hours, minutes = struct.unpack(
        "<hHHHHHIhh", raw)
    zone = datetime.timezone(datetime.timedelta(hours=hours, minutes=minutes))
    return datetime.datetime(year, month, day, hour, minute, second, nanosecond // 1000, zone)


pyodbc.pooling = False
session = pyodbc.connect(os.environ["PEER_CONNECTION"], autocommit=True)
session.add_output_converter(SQL_SS_TIMESTAMPOFFSET, offset_moment)
adapters.print_rows(session)
