"""Debezium's events and this product's rows in one form, so that they can be compared.

The form is (operation, before, after, commit LSN, change LSN, commit time) in the order of each
table's key; cells are texts. What differs between the two by design, and only that, is taken
away by these rules:

1. Update. Debezium makes one event of the two rows that CDC writes (operations 3 and 4);
   bronze keeps both, with the same _start_lsn, _command_id and _seqval. They are joined.
2. Order. Debezium's is the order of its events. Bronze has no order of its own: its rows are
   ordered by (_start_lsn, _command_id, _seqval, _operation), which is how SQL Server orders a
   change table (docs/cdc.md). Debezium does not keep __$command_id, so it is not compared.
3. Snapshot. Each program takes its own: two LSNs, two times, no order among the rows. Only the
   rows themselves are compared, key by key; nothing changes between the two snapshots.
4. LSN. Debezium writes 0000002a:00000190:0005, bronze 0x0000002A000001900005: the same ten
   bytes in two notations.
5. Commit time. Both come from cdc.lsn_time_mapping, whose datetime counts 1/300 s; Debezium cuts
   it to milliseconds since 1970 (.596), bronze has it rounded to milliseconds in UTC (.597). So
   the 1/300 s is compared. With data.query.mode=direct Debezium takes the transaction's begin
   instead (its statement names ltm.tran_begin_time), so there the time is not compared.
6. Microseconds. Delta's timestamps have six fraction digits; the seventh of datetime2(7) and
   datetimeoffset(7) is cut (docs/formats.md). Debezium's is cut as well.
7. Offset. Bronze keeps the instant of a datetimeoffset in UTC (docs/formats.md); Debezium's
   text with offset is converted to UTC.
8. Notation of values. Debezium's JSON has decimals as text (decimal.handling.mode=string),
   binary as hexadecimal, dates and times as ISO 8601 with a Z that means nothing (the types have
   no zone), uniqueidentifier as the driver prints it; bronze has Delta's types. A decimal's
   digits, a date's day, a time's 100 ns, a real's four bytes and a float's eight are compared.
9. Columns of one capture instance. A bronze table has the columns of all instances of its stream,
   NULL in rows of an instance without them; Debezium's event has the columns of the instance that
   it read. So a row of bronze is cut to the columns of its _capture_instance, and with that it is
   compared at which change each of the two went over to the second instance.
10. Unavailable values. CDC writes NULL for text, ntext and image in operations 1 and 3, and for
   xml and (max) types in 3 unless the update changed them (docs/cdc.md); bronze keeps the NULL.
   For text, ntext, image and xml Debezium puts unavailable.value.placeholder in its place, which
   is taken for the NULL that it stands for.
11. Tombstones (Kafka's marks for log compaction) are turned off: they repeat a delete's key.
"""

import datetime
import decimal
import struct

OPERATIONS = {1: "d", 2: "c", 4: "u"}
PLACEHOLDER = "__debezium_unavailable_value"  # Of text; of bytes, in hexadecimal.
PLACEHOLDERS = (PLACEHOLDER, PLACEHOLDER.encode().hex())
UNAVAILABLE = ("text", "ntext", "image", "xml")
TIMES = ("datetime", "smalldatetime", "datetime2")


def decimal_text(value) -> str:
    return f"{decimal.Decimal(value).normalize():f}" if value is not None else None


def moment_text(moment: datetime.datetime) -> str:
    return moment.isoformat(" ", "microseconds")


def iso_moment(text: str) -> datetime.datetime:
    """ISO 8601 with up to seven fraction digits, of which six are kept (rule 6)."""
    whole, zone = (text[:-1], "") if text.endswith("Z") else (text, "")
    for sign in ("+", "-"):
        place = whole.rfind(sign)
        if place > 10:
            whole, zone = whole[:place], whole[place:]
    head, _, fraction = whole.partition(".")
    if head.count(":") == 1:
        head += ":00"
    return datetime.datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}{zone}")


def debezium_cell(value, sql_type: str) -> str | None:
    """Rules 6 to 8 on a value of Debezium's JSON."""
    base = sql_type.split("(")[0]
    if value is None or value in PLACEHOLDERS and base in UNAVAILABLE:
        return None
    if base == "bit":
        return str(value)
    if base in ("decimal", "numeric", "money", "smallmoney"):
        return decimal_text(value)
    if base == "real":
        return struct.pack("<f", value).hex()
    if base == "float":
        return struct.pack("<d", value).hex()
    if base == "date":
        return value.removesuffix("Z")
    if base == "time":
        whole, _, fraction = value.removesuffix("Z").partition(".")
        return f"{whole}{':00' if whole.count(':') == 1 else ''}.{fraction:0<7}"
    if base in TIMES:
        return moment_text(iso_moment(value))
    if base == "datetimeoffset":
        return moment_text(iso_moment(value.replace("Z", "+00:00")).astimezone(
            datetime.timezone.utc))
    if base in ("binary", "varbinary", "image"):
        return value.lower()
    return str(value)


def bronze_cell(value, sql_type: str) -> str | None:
    """The same on a value that deltalake reads."""
    base = sql_type.split("(")[0]
    if value is None:
        return None
    if base in ("decimal", "numeric", "money", "smallmoney"):
        return decimal_text(value)
    if base == "real":
        return struct.pack("<f", value).hex()
    if base == "float":
        return struct.pack("<d", value).hex()
    if base == "date":
        return value.isoformat()
    if base == "time":
        return value[:-2]  # Nine digits, of which the last two are 0.
    if base in TIMES:
        return moment_text(value)
    if base == "datetimeoffset":
        return moment_text(value.astimezone(datetime.timezone.utc))
    if base in ("binary", "varbinary", "image"):
        return value.hex()
    return str(value)


def debezium_row(row: dict | None, types: dict[str, str]) -> dict | None:
    return row and {name: debezium_cell(value, types[name]) for name, value in row.items()}


def debezium_lsn(text: str) -> str:
    return "0x" + text.replace(":", "").upper()


def debezium_change(value: dict, types: dict[str, str]) -> dict:
    source = value["source"]
    return {"operation": value["op"], "before": debezium_row(value["before"], types),
            "after": debezium_row(value["after"], types),
            "commit": debezium_lsn(source["commit_lsn"]),
            "change": debezium_lsn(source["change_lsn"]), "at": server_ticks(source["ts_ms"])}


def bronze_row(row: dict, types: dict[str, str], captured: dict[str, set[str]]) -> dict:
    """Rules 6 to 9; `captured`: the columns of each capture instance."""
    names = captured[row["_capture_instance"]]
    return {name: bronze_cell(row[name], types[name]) for name in types if name in names}


def server_ticks(milliseconds: int) -> int:
    """Rule 5: the 1/300 s that a number of milliseconds stands for."""
    return (milliseconds * 3 + 5) // 10


def milliseconds(moment: datetime.datetime) -> int:
    return (moment.replace(tzinfo=datetime.timezone.utc)
            - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            ) // datetime.timedelta(milliseconds=1)


def bronze_changes(rows: list[dict], types: dict[str, str],
                   captured: dict[str, set[str]]) -> list[dict]:
    """Rules 1 and 2: the changes of one stream in order."""
    rows = sorted((row for row in rows if row["_operation"] != 0),
                  key=lambda row: (row["_start_lsn"], row["_command_id"], row["_seqval"],
                                   row["_operation"]))
    changes, old = [], None
    for row in rows:
        if row["_operation"] == 3:
            old = row
            continue
        image = bronze_row(row, types, captured)
        before = image if row["_operation"] == 1 else None
        if row["_operation"] == 4:
            together = ("_start_lsn", "_command_id", "_seqval")
            if old is None or any(old[name] != row[name] for name in together):
                raise ValueError(f"operation 4 without its 3 at {row['_start_lsn']}")
            before = bronze_row(old, types, captured)
        changes.append({"operation": OPERATIONS[row["_operation"]], "before": before,
                        "after": image if row["_operation"] != 1 else None,
                        "commit": row["_start_lsn"], "change": row["_seqval"],
                        "at": server_ticks(milliseconds(row["_commit_ts"]))})
    return changes


def by_key(changes: list[dict], key: tuple[str, ...]) -> dict[tuple, list[dict]]:
    found: dict[tuple, list[dict]] = {}
    for change in changes:
        image = change["before"] or change["after"]
        found.setdefault(tuple(image[name] for name in key), []).append(change)
    return found
