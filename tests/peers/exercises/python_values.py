"""The parameters of the exercises, as Python's types."""

import datetime
import decimal
import json
import os
import re
import uuid

PARAMETERS = (4, "ü日", b"\x01", None, decimal.Decimal("12.34"), datetime.date(2024, 2, 29))
EVERY_TYPE = (
    9007199254740993, True, 0.1, decimal.Decimal("1234.5"), datetime.date(2024, 2, 29),
    datetime.time(23, 59, 58), datetime.datetime(2024, 2, 29, 23, 59, 58, 123000),
    uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF"), "Ωü日", b"\x00\xff\x7f",
)
MANY = ("SELECT a.id FROM dbo.all_types a CROSS JOIN dbo.all_types b "
        "CROSS JOIN dbo.all_types c CROSS JOIN dbo.all_types d")
RAISE = "\n\nRAISERROR(N'told', 12, 7)"


def every_type(mark: str) -> str:
    """The query for PEER_EVERY_TYPE with `mark` in the parameters' places."""
    return re.sub(r"\{\d+\}", lambda _: mark, os.environ["PEER_EVERY_TYPE"])


def say(name: str, text) -> None:
    print(json.dumps([name, str(text)]), flush=True)


def row_text(row) -> str:
    return "|".join("NULL" if value is None else
                    f"0x{value.hex()}" if isinstance(value, (bytes, bytearray)) else str(value)
                    for value in row)
