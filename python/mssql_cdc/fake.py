"""Writes the history that option backend=fake reads: a source without a server, for tests.

The files are those of the existing package, so that either reads what the other wrote. One writer;
readers may look at any time.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mssql_cdc.client import Lsn

Row = Mapping[str, Any]
Columns = str | Sequence[Any] | None

_FIRST_LSN = "0x0000002A000001000001"
_STEP = 16  # Between two transactions; changes number what lies between.
_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|\S+)\s+([A-Za-z_]+(?:\s*\([^)]*\))?)\s*(?:,|$)")


def _text(lsn: int) -> Lsn:
    return Lsn(f"0x{lsn:020X}")


def _number(lsn: str) -> int:
    return int(lsn, 16)


def _moment(at: datetime.datetime | None) -> str:
    at = datetime.datetime.now(datetime.timezone.utc) if at is None else at
    if at.tzinfo is not None:
        at = at.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return at.isoformat(timespec="milliseconds")


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("latin-1")
    return value


def _columns(given: Columns) -> list[list[str]] | None:
    """Columns as [name, TYPE]: Spark DDL, names, or pairs."""
    if given is None:
        return None
    if isinstance(given, str):
        found = _COLUMN.findall(given)
        return [[name.strip("`").replace("``", "`"), kind.upper()] for name, kind in found]
    return [[item, "STRING"] if isinstance(item, str) else [item[0], item[1].upper()]
            for item in given]


class FakeCdcDatabase:
    """The history in a directory, made where there is none."""

    def __init__(self, path: str | os.PathLike, capture_instances: Iterable[str],
                 start_lsn: str = _FIRST_LSN, keys: Mapping[str, Any] | None = None,
                 columns: Mapping[str, Columns] | None = None,
                 computed: Mapping[str, Sequence[str]] | None = None) -> None:
        self.path = pathlib.Path(path)
        for folder in ("changes", "ddl", "tables"):
            (self.path / folder).mkdir(parents=True, exist_ok=True)
        self._next = _number(start_lsn)
        mapping = self._lines("lsn_time_mapping.jsonl")
        if mapping:
            self._next = _number(mapping[-1]["start_lsn"]) + _STEP
        if (self.path / "min_lsn.json").exists():
            return
        instances = list(capture_instances)
        self._write("instances.json", {
            name: {"table": name, "created": None, "columns": _columns((columns or {}).get(name))}
            for name in instances})
        self._write("keys.json", dict(keys or {}))
        if computed:
            self._write("computed.json",
                        {name: sorted(c.lower() for c in names) for name, names in computed.items()})
        self._write("min_lsn.json", {name: _text(self._next) for name in instances})

    def commit(self, capture_instance: str, changes: Sequence[tuple[int, Row]],
               at: datetime.datetime | None = None) -> Lsn:
        """One transaction of the table: (operation, row) pairs; an update is 3 and then 4."""
        lsn = self._take_lsn()
        table = self._table_of(capture_instance)
        changes = [(operation, {name: _plain(value) for name, value in row.items()})
                   for operation, row in changes]
        computed = set(self._object("computed.json").get(table, []))
        for index, (name, known) in enumerate(self._instances_of(table)):
            lines = self._captured(lsn, changes, known["columns"], computed, index)
            self._append(f"changes/{name}.jsonl", lines)
        self._keep_rows(table, changes)
        self._map(lsn, at)
        return _text(lsn)

    def idle(self, at: datetime.datetime | None = None) -> Lsn:
        """A transaction of no captured table."""
        lsn = self._take_lsn()
        self._map(lsn, at)
        return _text(lsn)

    def cleanup(self, capture_instance: str, low_water_mark: str) -> None:
        """Removes changes below the mark."""
        mark = _number(low_water_mark)
        lowest = self._object("min_lsn.json")
        lowest[capture_instance] = _text(mark)
        self._write("min_lsn.json", lowest)
        file = f"changes/{capture_instance}.jsonl"
        self._replace(file, [line for line in self._lines(file)
                             if _number(line["start_lsn"]) >= mark])
        first = min(_number(lsn) for lsn in lowest.values())
        self._replace("lsn_time_mapping.jsonl",
                      [line for line in self._lines("lsn_time_mapping.jsonl")
                       if _number(line["start_lsn"]) >= first])

    def add_capture_instance(self, table: str, columns: Columns,
                             at: datetime.datetime | None = None, name: str | None = None) -> str:
        """A newer instance of the table, from the next commit on; its name."""
        table = self._table_of(table)
        there = self._instances_of(table)
        if len(there) >= 2:
            raise ValueError(f"{table} has two capture instances already")
        all_ = self._object("instances.json")
        number = 2
        while name is None:
            name = f"{table}_v{number}" if f"{table}_v{number}" not in all_ else None
            number += 1
        all_[name] = {"table": table, "created": _moment(at), "columns": _columns(columns)}
        self._write("instances.json", all_)
        self._write("min_lsn.json", {**self._object("min_lsn.json"), name: _text(self._next)})
        return name

    def drop_capture_instance(self, name: str) -> None:
        """Removes an instance with its changes."""
        for file in ("min_lsn.json", "instances.json"):
            kept = self._object(file)
            kept.pop(name, None)
            self._write(file, kept)
        for file in (f"changes/{name}.jsonl", f"ddl/{name}.jsonl"):
            (self.path / file).unlink(missing_ok=True)

    def ddl(self, capture_instance: str, column: str, command: str,
            new_type: str | None = None) -> Lsn:
        """A change of the table's columns, as every instance of it records it."""
        lsn = self._take_lsn()
        table = self._table_of(capture_instance)
        all_ = self._object("instances.json")
        for name, known in self._instances_of(table):
            self._append(f"ddl/{name}.jsonl", [{"lsn": _text(lsn), "command": command}])
            if new_type is not None and known["columns"]:
                all_[name]["columns"] = [
                    [each, new_type.upper() if each.lower() == column.lower() else kind]
                    for each, kind in known["columns"]]
        self._write("instances.json", all_)
        self._note_dropped(table, column, command.upper())
        return _text(lsn)

    def _note_dropped(self, table: str, column: str, command: str) -> None:
        dropped = self._object("dropped.json")
        names = set(dropped.get(table, []))
        if "DROP COLUMN" in command:
            names.add(column.lower())
            rows = self._object(f"tables/{table}.json")
            self._write(f"tables/{table}.json", {
                key: {name: value for name, value in row.items() if name.lower() != column.lower()}
                for key, row in rows.items()})
        elif "ADD" in command:
            names.discard(column.lower())
        self._write("dropped.json", {**dropped, table: sorted(names)})

    @staticmethod
    def _captured(lsn: int, changes: Sequence[tuple[int, Row]], columns: list | None,
                  computed: set[str], index: int) -> list[dict[str, Any]]:
        """What one instance of the table has of a transaction."""
        kept = None if columns is None else {name for name, _ in columns}
        lines, number, before = [], 0, None
        for operation, row in changes:
            seen = {name: None if name.lower() in computed else value for name, value in row.items()
                    if kept is None or name in kept}
            if operation != 4:
                number += 1
            line = {"start_lsn": _text(lsn), "seqval": _text(lsn + number),
                    "command_id": number + index, "operation": operation, "row": seen}
            if operation == 4 and before is not None and before["row"] == seen:
                lines.remove(before)  # Nothing that this instance captures was changed.
            else:
                lines.append(line)
            before = line if operation == 3 else None
        return lines

    def _keep_rows(self, table: str, changes: Sequence[tuple[int, Row]]) -> None:
        keys = self._object("keys.json").get(table)
        if not keys:
            return
        keys = [keys] if isinstance(keys, str) else keys
        rows = self._object(f"tables/{table}.json")
        for operation, row in changes:
            key = json.dumps([row[name] for name in keys])
            if operation in (2, 4):
                rows[key] = dict(row)
            elif operation in (1, 3):
                rows.pop(key, None)
        self._write(f"tables/{table}.json", rows)

    def _table_of(self, name: str) -> str:
        known = self._object("instances.json").get(name)
        return known["table"] if known else name

    def _instances_of(self, table: str) -> list[tuple[str, dict[str, Any]]]:
        lowest = self._object("min_lsn.json")
        there = [(name, known) for name, known in self._object("instances.json").items()
                 if known["table"] == table and name in lowest]
        return sorted(there, key=lambda each: (each[1]["created"] or "", lowest[each[0]]))

    def _take_lsn(self) -> int:
        lsn, self._next = self._next, self._next + _STEP
        return lsn

    def _map(self, lsn: int, at: datetime.datetime | None) -> None:
        self._append("lsn_time_mapping.jsonl",
                     [{"start_lsn": _text(lsn), "tran_end_time": _moment(at)}])

    def _object(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}

    def _lines(self, name: str) -> list[dict[str, Any]]:
        try:
            text = (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        if lines:
            with (self.path / name).open("a", encoding="utf-8") as into:
                into.write("".join(json.dumps(line) + "\n" for line in lines))

    def _replace(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        self._rename(name, "".join(json.dumps(line) + "\n" for line in lines))

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        self._rename(name, json.dumps(value))

    def _rename(self, name: str, text: str) -> None:
        partial = self.path / f"{name}.tmp"
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, self.path / name)


__all__ = ["FakeCdcDatabase"]
