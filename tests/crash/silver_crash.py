"""Part 5: silver. `apply`, `optimize` and `reconcile --repair`, each stopped at every operation.

Each stage is prepared once and kept; for every n it is put back, the command is stopped before its
n-th operation, then started again, plainly. In the end silver must be the source, key by key, its
position that of an undisturbed run, and another apply must find nothing to do.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import time

import deltalake
import model
import pyarrow as pa
import verify
from deltalake import QueryBuilder
from pipeline import Pipeline

APP_ID = "items-v1"


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    command: str
    arguments: tuple[str, ...] = ()


STAGES = (
    Stage("a new silver", "apply"),
    Stage("changes of silver", "apply"),
    Stage("many files", "optimize"),
    Stage("rows altered", "reconcile", ("--sample", "1", "--repair")),
)


def table(path: pathlib.Path) -> list[dict]:
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    return pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()


class Silver:
    def __init__(self, args, simulator, work: pathlib.Path) -> None:
        self.simulator, self.history = simulator, model.History(seed=9)
        simulator.create("silver_ops", model.CREATE,
                         "CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)")
        for statement in self.history.load(24):
            simulator.run(statement)
        simulator.enable("items")
        simulator.enable("other")
        self.folder, self.kept = work / "silver", work / "silver_kept"
        # Bronze's stream is another file: what is stopped here is silver's work alone.
        self.stream = Pipeline(args.program, self.folder / "stream", simulator, "silver_ops",
                               "dbo_items", APP_ID)
        bronze = self.stream
        self.silver, self.control = self.folder / "silver", self.folder / "control"
        self.pipeline = Pipeline(args.program, self.folder / "work", simulator, "silver_ops",
                                 "dbo_items", APP_ID, target=str(bronze.bronze),
                                 facts_table=str(bronze.facts), checkpoint=str(bronze.checkpoint),
                                 silver=str(self.silver), control_table=str(self.control))

    def must(self, pipeline: Pipeline, command: str = "run", *arguments: str) -> str:
        code, output = pipeline.run(command, arguments)
        if code != 0:
            raise verify.Wrong(f"{command} ended with {code}:\n{output}")
        return output

    def prepare(self, stage: Stage) -> None:
        """Puts the lake where the stage begins, on from where the last one ended."""
        if stage.name != "a new silver":
            self.must(self.pipeline, "apply")
        for _ in range(4 if stage.name == "many files" else 1):
            for _ in range(6):
                self.simulator.run(self.history.transaction())
            self.simulator.capture()
            self.must(self.stream)
            if stage.name in ("many files", "rows altered"):
                self.must(self.pipeline, "apply")
        if stage.name == "rows altered":
            self.alter()
            # A commit that silver has not applied: what a repair is stamped with.
            self.simulator.run(f"INSERT dbo.other (id) VALUES ({len(self.history.commits)})")
            self.simulator.capture()
            self.must(self.stream)
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.folder, self.kept)

    def alter(self) -> None:
        altered = {row["id"]: row for row in table(self.silver)}
        first, second = sorted(altered)[:2]
        altered[9_999] = altered.pop(first) | {"id": 9_999}
        altered[second]["note"] = "altered"
        target = deltalake.DeltaTable(os.fspath(self.silver))
        deltalake.write_deltalake(target, pa.Table.from_pylist(
            list(altered.values()), schema=pa.schema(target.schema().to_arrow())), mode="overwrite")

    def put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder)

    def check(self) -> None:
        found = {row["id"]: tuple(row[name] for name in model.COLUMNS) for row in table(self.silver)}
        source = {key: tuple(getattr(row, name) for name in model.COLUMNS)
                  for key, row in self.history.rows.items()}
        wrong = sorted(key for key in found.keys() | source.keys()
                       if found.get(key) != source.get(key))
        if wrong or len(found) != len(table(self.silver)):
            raise verify.Wrong(f"silver is not the source at keys {wrong}")

    def positions(self) -> list[tuple]:
        return sorted((row["table_name"], row["applied_lsn"], row["snapshot_lsn"],
                       row["open_snapshot_lsn"]) for row in table(self.control))

    def one(self, stage: Stage, number: int, shim: pathlib.Path) -> tuple[bool, int]:
        """Whether the stop was reached, and how many operations there were else."""
        self.put_back()
        log = self.folder / "count"
        code, output = self.pipeline.run(stage.command, stage.arguments,
                                         LD_PRELOAD=os.fspath(shim), CRASH_SHIM_LOG=os.fspath(log),
                                         CRASH_SHIM_AT=str(number))
        stopped = code == 137
        if not stopped and code != 0:
            raise verify.Wrong(f"{stage.command} ended with {code}:\n{output}")
        used = 0 if stopped else int(log.read_text())
        if stopped:
            self.must(self.pipeline, stage.command, *stage.arguments)
        # What a repair wrote before it was stopped is in flight for the next one.
        self.must(self.pipeline, "apply")
        self.check()
        version = deltalake.DeltaTable(os.fspath(self.silver)).version()
        self.must(self.pipeline, "apply")
        if deltalake.DeltaTable(os.fspath(self.silver)).version() != version:
            raise verify.Wrong("an apply with nothing to do made a commit")
        return stopped, used


def every_operation_on_silver(args, simulator, shim: pathlib.Path, work: pathlib.Path, tally) -> None:
    silver = Silver(args, simulator, work)
    silver.must(silver.stream)
    # A case takes several runs; a sample of a sample is enough beside ./dev crash, which does all.
    stride = args.stride if args.stride == 1 else 5 * args.stride
    begun = time.monotonic()
    told = []
    for stage in STAGES:
        silver.prepare(stage)
        total = silver.one(stage, 10**9, shim)[1]
        position = silver.positions()
        reached = 0

        def stop_at(number: int) -> None:
            nonlocal reached
            reached += silver.one(stage, number, shim)[0]
            if silver.positions() != position:
                raise verify.Wrong(f"positions are {json.dumps(silver.positions())}, "
                                   f"not {json.dumps(position)}")

        for number in range(1, total + 1, stride):
            tally.case(f"silver, {stage.name}: {stage.command} stopped at operation {number} of "
                       f"{total}", "./dev crash", lambda n=number: stop_at(n))
        told.append(f"{stage.command} ({stage.name}) {total}, {reached} stops")
    print(f"part 5: operations: {'; '.join(told)}; stride {stride}, "
          f"{time.monotonic() - begun:.0f} s", flush=True)
