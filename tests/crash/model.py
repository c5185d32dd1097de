"""What the source must have done: the generator's own record, never the server's change tables.

`History` draws transactions from a seed, sends each as T-SQL and keeps (1) the table's rows and
(2) the changes in the order CDC must report them, by what the documentation says of each statement
(docs/cdc.md, "What each statement writes").
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import random

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4
COLUMNS = ("id", "name", "amount", "changed_at", "note")
CREATE = (
    "CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, name nvarchar(60) NOT NULL, "
    "amount decimal(18,4) NULL, changed_at datetime2(7) NULL, note nvarchar(400) NULL)"
)
NAMES = ("Ærø", "bolt", "Ключ", "ねじ", "nut", "", "a'b", "naïve ☃")


@dataclasses.dataclass(frozen=True)
class Row:
    id: int
    name: str
    amount: decimal.Decimal | None
    changed_at: datetime.datetime | None
    note: str | None

    def literals(self) -> dict[str, str]:
        def text(value):
            return "NULL" if value is None else "N'" + value.replace("'", "''") + "'"

        return {
            "id": str(self.id),
            "name": text(self.name),
            "amount": "NULL" if self.amount is None else str(self.amount),
            "changed_at": "NULL"
            if self.changed_at is None
            else "'" + self.changed_at.isoformat(sep=" ", timespec="microseconds") + "'",
            "note": text(self.note),
        }


class History:
    """One table's life. `commits` holds, per transaction, its changes as (operation, Row)."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rows: dict[int, Row] = {}
        self.commits: list[list[tuple[int, Row]]] = []
        self.next_id = 1

    def _draw(self, row_id: int) -> Row:
        dice = self.dice
        amount = None
        if dice.random() < 0.85:
            amount = decimal.Decimal(dice.randrange(-(10**9), 10**9)).scaleb(-4)
        when = None
        if dice.random() < 0.8:
            when = datetime.datetime(1, 1, 1) + datetime.timedelta(
                days=dice.randrange(0, 3_650_000), microseconds=dice.randrange(86_400_000_000)
            )
        note = None if dice.random() < 0.3 else dice.choice(NAMES) * dice.randrange(1, 9)
        return Row(row_id, dice.choice(NAMES), amount, when, note)

    def load(self, row_count: int) -> list[str]:
        """The statements that fill the table before CDC sees it; not recorded as changes."""
        statements = []
        for _ in range(row_count):
            row = self._draw(self.next_id)
            self.next_id += 1
            self.rows[row.id] = row
            statements.append(self._insert(row))
        return statements

    @staticmethod
    def _insert(row: Row) -> str:
        values = row.literals()
        return f"INSERT dbo.items ({', '.join(COLUMNS)}) VALUES ({', '.join(values[c] for c in COLUMNS)})"

    def transaction(self, statement_count: int | None = None) -> str:
        """The next transaction's T-SQL; its changes are appended to `commits`."""
        count = statement_count or self.dice.randrange(1, 5)
        changes: list[tuple[int, Row]] = []
        statements = [self._statement(changes) for _ in range(count)]
        self.commits.append(changes)
        return "BEGIN TRAN; " + "; ".join(statements) + "; COMMIT TRAN;"

    def _statement(self, changes: list[tuple[int, Row]]) -> str:
        kind = self.dice.choices(("insert", "update", "delete", "key"), (4, 4, 2, 1))[0]
        if kind == "insert" or not self.rows:
            row = self._draw(self.next_id)
            self.next_id += 1
            self.rows[row.id] = row
            changes.append((INSERT, row))
            return self._insert(row)
        old = self.rows[self.dice.choice(sorted(self.rows))]
        if kind == "delete":
            del self.rows[old.id]
            changes.append((DELETE, old))
            return f"DELETE dbo.items WHERE id = {old.id}"
        if kind == "key":
            new = dataclasses.replace(old, id=self.next_id)
            self.next_id += 1
            del self.rows[old.id]
            self.rows[new.id] = new
            changes += [(DELETE, old), (INSERT, new)]
            return f"UPDATE dbo.items SET id = {new.id} WHERE id = {old.id}"
        new = self._draw(old.id)
        while new == old:
            new = self._draw(old.id)
        self.rows[old.id] = new
        changes += [(BEFORE, old), (AFTER, new)]
        values = new.literals()
        sets = ", ".join(f"{c} = {values[c]}" for c in COLUMNS[1:])
        return f"UPDATE dbo.items SET {sets} WHERE id = {old.id}"
