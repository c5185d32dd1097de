"""What the existing package leaves when it is stopped, gone on from by the binary, then by it again.

The package is stopped inside its own steps (package_worker.stopping): within a full snapshot,
within the opening, the planning and each part of a wave of a chunked one, and within the recovery
of a loss. Then the source changes, the binary goes on, and its silver must be the source; then the
package streams what comes next, and its silver of the same bronze must equal ours row by row. The
facts must tell of one snapshot, each chunk once and batches without a gap.
"""

from __future__ import annotations

import json
import shutil

import deltalake
from check_values import must_run
from existing_silver import ITEMS, LINES, Pair, fill

WAVE = r".*#snapchunks\..*"
RECOVERY = "mssql_cdc.pipeline._recovery:_write_state"
SNAPSHOT = "mssql_cdc.pipeline._snapshots:_Snapshots._take_snapshot"
EVENT, PLANS = "mssql_cdc.events:write_event", "mssql_cdc.events:write_plans"
FACTS = "mssql_cdc.sink:write_facts"
APPEND = "mssql_cdc.pipeline._chunked:_Chunked._append_wave"

IN_FULL = {
    "opened": (SNAPSHOT, "", 1),
    "read": (EVENT, "bootstrap", 1),
}
IN_CHUNKS = {
    "planned": (APPEND, "", 1),
    "appended": (PLANS, WAVE, 2),
    "in-plans": (FACTS, WAVE, 2),
    "all-read": (EVENT, "bootstrap", 1),
}
IN_RECOVERY = {
    "noticed": ("full", SNAPSHOT, "", 1),
    "read": ("full", EVENT, "resnapshot", 1),
    "told": ("full", RECOVERY, "", 2),
    "opened": ("chunked", RECOVERY, "", 2),
}
KEPT = ("bronze", "bronze_snapshot_plans", "facts", "checkpoint")


class Left(Pair):
    """A stream that the package begins, below a folder of its own."""

    def __init__(self, tally, where, name: str, table: str, database: str, **options) -> None:
        super().__init__(tally, where, name, table, database, **options)
        self.mode = options.get("snapshot", "full")
        self.target = {"options": self.options, "target": self.pipeline.bronze,
                       "app_id": f"{name}-v1", "facts": self.pipeline.facts}
        self.streaming = {**self.target, "bootstrap": True, "snapshot": self.mode,
                          "checkpoint": self.pipeline.checkpoint,
                          **{key: value for key, value in options.items()
                             if key in ("on_data_loss", "resnapshot_interval_days")}}
        self.cutting = {**self.target, "chunk_rows": 10, "target_wave_seconds": 0}

    def stream(self) -> None:
        self.where.package.do("stream", **self.streaming)

    def stop(self, does: str, at: tuple, **arguments) -> None:
        function, holding, number = at
        self.tally.equal(f"{self.name}: the package stops at {function} {holding}", True,
                         self.where.package.do("stopped", does=does, at=function, holding=holding,
                                               number=number, **arguments))

    def keep(self, as_name: str) -> None:
        for name in KEPT:
            if (self.folder / name).exists():
                shutil.copytree(self.folder / name, self.folder / as_name / name)

    def put_back(self, as_name: str) -> None:
        """The state that `keep` saw; silvers are gone."""
        for name in (*KEPT, "ours", "theirs", "theirs_control", "control"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            if (self.folder / as_name / name).exists():
                shutil.copytree(self.folder / as_name / name, self.folder / name)
        self.where.package.do("forget")

    def change(self) -> None:
        simulator, table = self.where.simulator, self.table
        if table == "lines":
            simulator.run("UPDATE dbo.lines SET price = ISNULL(price, 0) + 1 WHERE order_id < 4")
            simulator.run("UPDATE dbo.lines SET sku = CASE sku WHEN 'a' THEN 'b' ELSE 'a' END "
                          "WHERE order_id = 5")
        else:
            simulator.run(f"UPDATE dbo.{table} SET amount = amount + 1 WHERE id BETWEEN 1 AND 6")
            simulator.run(f"UPDATE dbo.{table} SET id = CASE id WHEN 11 THEN 12 ELSE 11 END "
                          "WHERE id IN (11, 12)")
            simulator.run(f"DELETE dbo.{table} WHERE id = (SELECT MAX(id) FROM dbo.{table})")
            simulator.run(f"INSERT dbo.{table} (id, customer) VALUES (-{next_number()}, N'new')")
        simulator.capture()

    def backfill(self) -> None:
        """Ours, to the end."""
        code, output = self.pipeline.run("backfill", ("--chunk-rows", "10"))
        self.tally.equal(f"{self.name}: mssql-cdc backfill ({output[-500:]})", code, 0)

    def apply_ours(self) -> None:
        code, output = self.applying.run("apply")
        self.tally.equal(f"{self.name}: mssql-cdc apply ({output[-500:]})", code, 0)

    def facts(self) -> list[dict]:
        return deltalake.DeltaTable(str(self.pipeline.facts)).to_pyarrow_table().to_pylist()

    def check_facts(self, what: str, completions: list[str]) -> None:
        """`completions`: the events that say a snapshot is complete, of all generations."""
        tally, facts, what = self.tally, self.facts(), f"{self.name}, {what}"
        complete = [row for row in facts if row["event"] in ("bootstrap", "resnapshot")]
        tally.equal(f"{what}: complete snapshots", sorted(row["event"] for row in complete),
                    completions)
        if self.mode == "chunked":
            newest = max(row["min_lsn"] for row in complete)
            chunks = [json.loads(row["detail"]) for row in facts
                      if row["event"] == "snapshot_chunk"]
            chunks = [chunk for chunk in chunks if chunk["snapshot"] == newest]
            tally.equal(f"{what}: chunks, each once", sorted(chunk["chunk"] for chunk in chunks),
                        list(range(len(chunks))))
            waves = {chunk["wave"] for chunk in chunks}
            tally.equal(f"{what}: waves without a gap", waves, set(range(len(waves))))
        for sink in {row["app_id"] for row in facts}:
            batches = sorted(row["batch_id"] for row in facts
                             if row["app_id"] == sink and row["event"] is None)
            tally.equal(f"{what}: batches of {sink}", batches, list(range(len(batches))))

    def goes_on(self, what: str, completions: list[str], package: bool = True) -> None:
        """Ours from where the package stopped, then the `package` from where ours stands."""
        columns = (["order_id", "sku", "price"] if self.table == "lines"
                   else ["id", "customer", "amount"])
        self.change()
        must_run(self.pipeline)
        if self.mode == "chunked":
            self.backfill()
        self.change()
        must_run(self.pipeline)
        self.check_facts(what, completions)
        self.apply_ours()
        self.compare_source(what, columns)
        if not package:
            return
        self.change()
        self.stream()
        self.apply_theirs()
        self.apply_ours()
        self.compare(f"{what}, then the package", self.theirs)
        self.compare_source(f"{what}, then the package", columns)
        self.check_facts(f"{what}, then the package", completions)


_numbers = iter(range(1, 1000))


def next_number() -> int:
    return next(_numbers)


def make_tables(simulator, database: str) -> None:
    simulator.create(database, ITEMS.format(name="items"), LINES)
    fill(simulator, "items", 1, 60)
    for order in range(1, 21):
        simulator.run(f"INSERT dbo.lines VALUES ({order}, 'a', 1.25), ({order}, 'b', NULL)")
    simulator.enable("items")
    simulator.enable("lines")


def open_full_snapshots(tally, where) -> None:
    make_tables(where.simulator, "openfull")
    for name, at in IN_FULL.items():
        left = Left(tally, where, f"full-{name}", "items", "openfull")
        left.stop("stream", at, **left.streaming)
        left.goes_on(name, ["bootstrap"])


def open_chunked_snapshots(tally, where) -> None:
    make_tables(where.simulator, "openchunks")
    half = Left(tally, where, "chunks-half", "items", "openchunks", snapshot="chunked")
    half.stop("stream", (EVENT, "snapshot_open", 1), **half.streaming)
    half.goes_on("half opened", ["bootstrap"])
    items, lines = (Left(tally, where, f"chunks-{table}", table, "openchunks", snapshot="chunked")
                    for table in ("items", "lines"))
    for left in (items, lines):
        left.stream()
        left.keep("opened")
        left.goes_on("opened", ["bootstrap"], package=left is items)
        for name, at in IN_CHUNKS.items():
            if left is items or name == "appended":
                left.put_back("opened")
                left.stop("backfill", at, **left.cutting)
                left.goes_on(name, ["bootstrap"])
    items.put_back("opened")
    where.package.do("backfill", max_waves=1, **items.cutting)
    items.goes_on("one wave", ["bootstrap"])


def lose(simulator) -> None:
    """Changes that nobody has read are gone."""
    simulator.run("UPDATE dbo.items SET customer = N'lost' WHERE id < 5")
    simulator.capture()
    simulator.run("DELETE dbo.items WHERE id = 40")
    simulator.capture()
    simulator.run("EXEC sim.cleanup @retention = 0")
    simulator.run("UPDATE dbo.items SET customer = N'kept' WHERE id = 7")
    simulator.capture()


def open_recoveries(tally, where) -> None:
    simulator = where.simulator
    make_tables(simulator, "openlosses")
    more = {"on_data_loss": "resnapshot", "resnapshot_interval_days": 0}
    whole = Left(tally, where, "loss-full", "items", "openlosses", **more)
    chunked = Left(tally, where, "loss-chunked", "items", "openlosses", snapshot="chunked", **more)
    for left in (whole, chunked):
        left.stream()
    where.package.do("backfill", **chunked.cutting)
    lose(simulator)
    for left in (whole, chunked):
        left.keep("lost")
    for name, (mode, *at) in IN_RECOVERY.items():
        left = whole if mode == "full" else chunked
        left.put_back("lost")
        left.stop("stream", tuple(at), **left.streaming)
        left.goes_on(name, ["bootstrap", "resnapshot"])
        state = json.loads((left.pipeline.checkpoint / "_mssql_cdc_generation.json").read_text())
        tally.equal(f"{left.name}, {name}: generation", state["generation"], 1)
    chunked.put_back("lost")
    chunked.stream()
    where.package.do("backfill", max_waves=1, **chunked.cutting)
    chunked.goes_on("one wave", ["bootstrap", "resnapshot"])
