"""The table of values: every SQL type with typical, extreme, empty and NULL cells.

values.json holds, per column, the SQL type and for each row the literal that is inserted and
the canonical text that must come out. Canonical texts: integers and decimals as SQL Server
prints them with all fraction digits; real and float as the shortest number that reads back;
dates and times ISO 8601 with a blank, the fraction digits of the type and the offset as
+hh:mm; binary as 0x and upper-case hexadecimal; char, nchar and binary with their padding;
uniqueidentifier in upper case. There is no empty text inside a sql_variant: Microsoft's driver
cannot fetch one, and tsql prints nothing for it, not even the separator.

Each row is in the table twice, once for each form of a row in TDS: a NULL in the filler, whose
NULL alone costs eight bytes, makes a null bitmap the shorter form (MS-TDS 2.2.7.14).
"""

import dataclasses
import datetime
import decimal
import json
import math
import pathlib
import re
import struct

HERE = pathlib.Path(__file__).resolve().parent
ROWS = ["typical", "least", "most", "empty", "null"]
FORMS = {"ROW": "filled", "NBCROW": None}  # What the filler holds to get each.
FILLER = "c_filler"
TABLE = "dbo.all_types"


@dataclasses.dataclass(frozen=True)
class Column:
    name: str
    type: str
    literals: dict[str, str]
    texts: dict[str, str | None]

    @property
    def family(self) -> str:
        """The type's name without length, scale and collation."""
        return re.match(r"\w+", self.type)[0]

    @property
    def fraction_digits(self) -> int:
        given = re.search(r"\((\d)\)", self.type)
        return {"datetime": 3, "smalldatetime": 0}.get(
            self.family, int(given[1]) if given else 0)


def columns() -> list[Column]:
    """All columns; the filler is the last."""
    made = [
        Column(one["column"], one["type"],
               {row: cell["sql"] for row, cell in one["cells"].items()},
               {row: cell["text"] for row, cell in one["cells"].items()})
        for one in json.loads((HERE / "values.json").read_text())
    ]
    return [*made, Column(FILLER, "nvarchar(max)", {}, {})]


def expected(column: Column, row: str, form: str) -> str | None:
    return FORMS[form] if column.name == FILLER else column.texts[row]


def read_rows() -> list[tuple[str, str]]:
    """(row, form) in the order in which query() returns them."""
    return [(row, form) for form in FORMS for row in ROWS]


def literal(column: Column, row: str, form: str) -> str:
    if column.name != FILLER:
        return column.literals[row]
    return "NULL" if FORMS[form] is None else f"N'{FORMS[form]}'"


def script() -> list[str]:
    """The statements that make the table in the current database, a row each."""
    made = columns()
    listed = ",\n  ".join(f"{one.name} {one.type} NULL" for one in made)
    statements = [f"CREATE TABLE {TABLE} (\n  id int NOT NULL PRIMARY KEY,\n  {listed})"]
    names = ", ".join(one.name for one in made)
    for number, (row, form) in enumerate(read_rows(), 1):
        literals = ",\n  ".join(literal(one, row, form) for one in made)
        statements.append(f"INSERT INTO {TABLE} (id, {names}) VALUES ({number},\n  {literals})")
    return statements


def query(chosen: list[Column]) -> str:
    names = ", ".join(one.name for one in chosen)
    return f"SELECT {names} FROM {TABLE} ORDER BY id"


def same(column: Column, expected: str | None, got: str | None, rule: str | None) -> bool:
    """Whether a peer's text means the expected value, under a limit's rule if there is one."""
    if expected is None or got is None:
        return expected is got
    if rule == "microseconds":
        expected = re.sub(r"(\.\d{6})\d", r"\1", expected)
        got = re.sub(r"(\.\d{6})\d", r"\1", got)
    if rule == "minutes":
        expected, got = (re.sub(r"(\d\d:\d\d).*", r"\1", text) for text in (expected, got))
        return expected == got
    if rule == "milliseconds":
        got = re.sub(r"\.\d+", lambda found: f"{float(found[0]):.3f}"[1:], got)
    if rule == "instant":
        return instant(expected) == instant(got)
    if rule == "double":
        return math.isclose(float(expected), float(got), rel_tol=1e-15)
    if column.family == "real":
        return struct.pack("<f", float(expected)) == struct.pack("<f", float(got))
    if column.family == "float":
        return float(expected) == float(got)
    if column.family in ("decimal", "numeric", "money", "smallmoney"):
        # Some drivers drop zeros at the end.
        return decimal.Decimal(expected) == decimal.Decimal(got)
    return fraction(expected, column) == fraction(got, column)


def instant(text: str) -> tuple[datetime.datetime, str]:
    """The moment in UTC to the second, and its fraction."""
    found = re.fullmatch(r"(.*:\d\d)\.(\d{7}) ([+-]\d\d:\d\d)", text)
    moment = datetime.datetime.fromisoformat(found[1] + found[3])
    return moment.astimezone(datetime.timezone.utc), found[2]


def fraction(text: str, column: Column) -> str:
    """Without zeros behind the fraction digits that the type has."""
    if column.family not in ("time", "datetime", "datetime2", "datetimeoffset",
                             "smalldatetime"):
        return text
    digits = column.fraction_digits
    found = re.fullmatch(r"(.*:\d\d)(?:\.(\d+))?( [+-]\d\d:\d\d)?", text)
    if not found:
        return text
    kept, rest = (found[2] or "")[:digits], (found[2] or "")[digits:]
    if rest.strip("0"):
        return text
    return f"{found[1]}.{kept:0<{digits}}{found[3] or ''}"
