"""Tables as older releases of the existing package left them, gone on from by the binary, then by it.

The package makes the tables, which are then brought into an older form (older_forms.py). A chunked
snapshot that was opened before the plans table keeps its key values in the facts to its end.
"""

from __future__ import annotations

import json
import shutil

from check_values import must_run
from older_forms import (
    BRONZE_SINCE, CONTROL_SINCE, FACTS_SINCE, NEWEST, facts_row_at, rewrite, version_of,
    whole_details)
from open_states import Left, make_tables
from pipeline import Pipeline


class Older(Left):
    """Both apply to one silver, which the package made."""

    def __init__(self, tally, where, name: str, **options) -> None:
        super().__init__(tally, where, name, "items", "older", **options)
        self.control = self.folder / "theirs_control"
        self.ours = self.theirs
        self.applying = Pipeline(
            where.program, self.folder / "apply", where.simulator, "older", "dbo_items",
            f"{name}-v1", target=str(self.pipeline.bronze), facts_table=str(self.pipeline.facts),
            silver=str(self.theirs), checkpoint=str(self.pipeline.checkpoint),
            control_table=str(self.control))

    def keep(self, as_name: str) -> None:
        super().keep(as_name)
        for name in ("theirs", "theirs_control"):
            if (self.folder / name).exists():
                shutil.copytree(self.folder / name, self.folder / as_name / name)

    def check_versions(self, what: str) -> None:
        tables = {"bronze": self.pipeline.bronze, "facts": self.pipeline.facts,
                  "control": self.control}
        self.tally.equal(f"{self.name}, {what}: versions",
                         {kind: version_of(table) for kind, table in tables.items()}, NEWEST)


def go_on(older: Older, what: str, package: bool) -> None:
    """Ours, and the package where asked, on the tables and on the package's silver."""
    columns = ["id", "customer", "amount"]
    older.change()
    must_run(older.pipeline)
    if older.mode == "chunked":
        older.backfill()
        must_run(older.pipeline)
    older.apply_ours()
    older.check_versions(what)
    older.compare_source(what, columns)
    if package:
        older.change()
        older.stream()
        older.apply_theirs()
        older.compare_source(f"{what}, then the package", columns)


def whole_tables(tally, where) -> None:
    older = Older(tally, where, "older-whole")
    older.stream()
    older.change()
    older.stream()
    older.apply_theirs()
    older.keep("newest")
    for version in range(NEWEST["facts"]):
        older.put_back("newest")
        bronze = min(version, NEWEST["bronze"]) if version < 3 else NEWEST["bronze"]
        control = min(version, NEWEST["control"])
        if bronze < NEWEST["bronze"]:
            rewrite(older.pipeline.bronze, bronze, BRONZE_SINCE)
        if control < NEWEST["control"]:
            rewrite(older.control, control, CONTROL_SINCE)
        rewrite(older.pipeline.facts, version, FACTS_SINCE, facts_row_at(version))
        what = f"facts {version}, bronze {bronze}, control {control}"
        go_on(older, what, package=version in (0, 2, 6))


PACKAGE = (("opened", 7), ("one wave", 8))  # What the package goes on from as well.


def chunks_before_plans(tally, where) -> None:
    """Opened only, and with one wave read."""
    older = Older(tally, where, "older-chunks", snapshot="chunked")
    older.stream()
    older.apply_theirs()
    older.keep("opened")
    where.package.do("backfill", max_waves=1, **older.cutting)
    older.keep("one wave")
    for state, versions in (("opened", (7, 8, 12)), ("one wave", (8, 10, 12))):
        for version in versions:
            older.put_back(state)
            plans = older.folder / "bronze_snapshot_plans"
            rewrite(older.pipeline.facts, version, FACTS_SINCE, whole_details(plans, version))
            shutil.rmtree(plans)
            go_on(older, f"{state} at facts {version}", package=(state, version) in PACKAGE)
            tally.equal(f"{state} at facts {version}: no plans table", plans.exists(), False)
            chunks = [json.loads(row["detail"]) for row in older.facts()
                      if row["event"] == "snapshot_chunk"]
            tally.equal(f"{state} at facts {version}: bounds in the facts",
                        bool(chunks) and all("hi" in chunk for chunk in chunks), True)


def older_versions(tally, where) -> None:
    make_tables(where.simulator, "older")
    whole_tables(tally, where)
    chunks_before_plans(tally, where)
