"""Compares a lake with what a History says, through a reader that is not ours (deltalake)."""

from __future__ import annotations

import json
import os
import pathlib

import deltalake

import model


class Wrong(Exception):
    """The lake and the model disagree; the text says where."""


def _table(path: pathlib.Path) -> tuple[deltalake.DeltaTable, list[dict]]:
    table = deltalake.DeltaTable(os.fspath(path))
    return table, table.to_pyarrow_table().to_pylist()


def _row(values: dict) -> model.Row:
    return model.Row(*(values[column] for column in model.COLUMNS))


def _expect(condition: bool, text: str) -> None:
    if not condition:
        raise Wrong(text)


def check_bronze(
    bronze: pathlib.Path,
    snapshot: dict[int, model.Row],
    commits: list[list[tuple[int, model.Row]]],
    app_id: str,
) -> dict[int, int]:
    """Every snapshot row and every change once, in order, whole commits per batch.

    Returns the number of change rows of each batch id.
    """
    table, rows = _table(bronze)
    taken = [row for row in rows if row["_operation"] == 0]
    stamps = {row["_start_lsn"] for row in taken}
    _expect(len(stamps) <= 1, f"{len(stamps)} snapshots in bronze: {sorted(stamps)}")
    _expect(
        sorted((_row(row) for row in taken), key=lambda row: row.id)
        == [snapshot[key] for key in sorted(snapshot)],
        f"snapshot: {len(taken)} rows in bronze, {len(snapshot)} in the source",
    )
    for row in taken:
        _expect(
            row["_snapshot"] == row["_start_lsn"] and row["_batch_id"] is None and row["_chunk"] is None,
            "a snapshot row has the sink columns of a change",
        )

    changes = [row for row in rows if row["_operation"] != 0]
    changes.sort(key=lambda r: (r["_start_lsn"], r["_command_id"], r["_seqval"], r["_operation"]))
    got: dict[str, list[tuple[int, model.Row]]] = {}
    batch_of: dict[str, set[int]] = {}
    for row in changes:
        got.setdefault(row["_start_lsn"], []).append((row["_operation"], _row(row)))
        batch_of.setdefault(row["_start_lsn"], set()).add(row["_batch_id"])
    _expect(
        len(got) == len(commits), f"{len(got)} commits in bronze, {len(commits)} in the source"
    )
    for number, (lsn, expected) in enumerate(zip(sorted(got), commits)):
        _expect(
            got[lsn] == expected,
            f"commit {number} at {lsn}:\n  bronze {got[lsn]}\n  source {expected}",
        )
        _expect(len(batch_of[lsn]) == 1, f"commit {lsn} lies in batches {batch_of[lsn]}")
    in_order = [next(iter(batch_of[lsn])) for lsn in sorted(got)]
    _expect(in_order == sorted(in_order), f"batch ids go back along the LSNs: {in_order}")
    if stamps and got:
        _expect(min(got) > next(iter(stamps)), "a change at or below the snapshot's LSN")

    counts: dict[int, int] = {}
    for row in changes:
        counts[row["_batch_id"]] = counts.get(row["_batch_id"], 0) + 1
    last = table.transaction_version(app_id)
    _expect(
        last == (max(counts) if counts else None),
        f"txn of {app_id} is {last}, the last batch with rows {max(counts, default=None)}",
    )
    _check_history(table, counts)
    return counts


def check_chunked(bronze: pathlib.Path, facts: pathlib.Path, snapshot: dict[int, model.Row],
                  source: dict[int, model.Row], app_id: str) -> None:
    """Every row of the snapshot once, in the chunk its facts say; the newest images are the source."""
    _, rows = _table(bronze)
    taken = [row for row in rows if row["_operation"] == 0]
    _expect(sorted(row["id"] for row in taken) == sorted(snapshot),
            f"{len(taken)} snapshot rows in bronze, {len(snapshot)} in the source")
    _, told = _table(facts)
    mine = [row for row in told if row["app_id"] == app_id and row["event"]]
    for event in ("snapshot_open", "snapshot_plan", "bootstrap"):
        count = sum(row["event"] == event for row in mine)
        _expect(count == 1, f"{count} {event} rows")
    chunks = {json.loads(row["detail"])["chunk"]: row["rows"] for row in mine
              if row["event"] == "snapshot_chunk"}
    counts = {chunk: sum(row["_chunk"] == chunk for row in taken) for chunk in chunks}
    _expect(counts == chunks, f"facts say {chunks} rows by chunk, bronze has {counts}")
    newest: dict[int, tuple] = {}
    for row in rows:
        order = (row["_start_lsn"], -1 if row["_command_id"] is None else row["_command_id"],
                 row["_seqval"] or "", row["_operation"])
        if row["id"] not in newest or newest[row["id"]][0] < order:
            newest[row["id"]] = (order, row)
    latest = {key: _row(row) for key, (_, row) in newest.items() if row["_operation"] != 1}
    _expect(latest == source, "the newest images are not the source")


def _check_history(table: deltalake.DeltaTable, counts: dict[int, int]) -> None:
    """Each batch was committed once, and says the number of rows it has."""
    said: dict[int, int] = {}
    for commit in table.history():
        text = commit.get("userMetadata")
        if not text:
            continue
        metadata = json.loads(text)
        if "batch_id" in metadata:
            _expect(metadata["batch_id"] not in said, f"batch {metadata['batch_id']} committed twice")
            said[metadata["batch_id"]] = metadata["rows"]
    _expect(said == counts, f"userMetadata says {said}, bronze has {counts}")


def check_facts(facts: pathlib.Path, counts: dict[int, int], app_id: str) -> None:
    """One row a batch, its numbers equal to bronze's; one bootstrap row."""
    _, rows = _table(facts)
    mine = [row for row in rows if row["app_id"] == app_id]
    batches = [row for row in mine if row["event"] is None]
    ids = sorted(row["batch_id"] for row in batches)
    _expect(ids == sorted(set(ids)), f"facts have a batch twice: {ids}")
    _expect(ids == list(range(len(ids))), f"facts lack a batch: {ids}")
    for row in batches:
        _expect(
            row["rows"] == counts.get(row["batch_id"], 0),
            f"facts of batch {row['batch_id']} say {row['rows']} rows, bronze has "
            f"{counts.get(row['batch_id'], 0)}",
        )
    bootstraps = [row for row in mine if row["event"] == "bootstrap"]
    _expect(len(bootstraps) == 1, f"{len(bootstraps)} bootstrap rows")


def check_checkpoint(checkpoint: pathlib.Path) -> None:
    """Nothing pending: the last offset is committed, nothing temporary is left."""
    offsets = sorted(int(p.name) for p in (checkpoint / "offsets").iterdir() if p.name.isdigit())
    commits = sorted(int(p.name) for p in (checkpoint / "commits").iterdir() if p.name.isdigit())
    _expect(bool(offsets) and offsets[-1] == commits[-1], f"offsets {offsets}, commits {commits}")
