"""One stream, its snapshots and its losses, gone on from by the existing package and the binary in turns."""

from __future__ import annotations

import json
import os

import deltalake
from chain import COLUMNS, ORDERS, Chain, Where, compare_bronze, compare_silver, fill_orders
from check_values import must_run
from pipeline import Pipeline
from tally import Tally


def taking_turns(tally: Tally, where: Where) -> None:
    """One checkpoint and one bronze, continued by each in turn, against a run of ours alone."""
    simulator = where.simulator
    simulator.create("turns", ORDERS)
    fill_orders(simulator, 1, 40)
    simulator.enable("orders")
    chain = Chain(where, "turns", "dbo_orders")
    alone = Pipeline(where.program, where.folder / "turns" / "alone", simulator, "turns",
                     "dbo_orders", "dbo_orders-v1")
    ours = chain.ours
    chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
    for turn, theirs in enumerate((False, True, True, False, False, True, False)):
        fill_orders(simulator, 1000 * (turn + 1), 3)
        simulator.run(f"UPDATE dbo.orders SET amount = amount + {turn} WHERE id < 4")
        simulator.run(f"DELETE dbo.orders WHERE id = {10 + turn}")
        if turn:
            simulator.capture()
        if theirs:
            chain.stream(bootstrap=True)
        else:
            must_run(ours)
        must_run(alone)
    for table, what in ((ours.bronze, "bronze"), (ours.facts, "facts")):
        tally.equal(f"in turns: {what} exists", (table / "_delta_log").is_dir(), True)
    chain.bronze, chain.ours = ours.bronze, alone
    compare_bronze(tally, "in turns", chain, ["id"])
    read = deltalake.DeltaTable(os.fspath(ours.facts)).to_pyarrow_table().to_pylist()
    batches = sorted(row["batch_id"] for row in read if row["event"] is None)
    tally.equal("in turns: one facts row per batch", len(set(batches)), len(batches))
    tally.equal("in turns: batches are numbered without a gap", batches,
                list(range(batches[0], batches[0] + len(batches))))


# Who does what: opens the snapshot, plans it with wave 0, reads wave 1, reads the rest; o is
# ours, p the package. Each follows each, and itself, at each step.
TURNS = ("opop", "poop", "oppo", "ppoo", "oopp")
CHUNKED = {"dbo_orders": (COLUMNS, 40), "dbo_lines": (["order_id", "line_no", "sku"], 25)}


class InTurns:
    """One stream of both, with a chunked snapshot."""

    def __init__(self, tally: Tally, where: Where, capture_instance: str, turns: str) -> None:
        self.tally, self.where, self.turns = tally, where, turns
        self.capture_instance = capture_instance
        self.columns, self.chunk_rows = CHUNKED[capture_instance]
        self.chain = chain = Chain(where, "chunkturns", capture_instance)
        self.ours = ours = Pipeline(
            where.program, where.folder / "chunkturns" / turns, where.simulator, "chunkturns",
            capture_instance, f"{capture_instance}-{turns}", snapshot="chunked",
            numPartitions="2", silver=str(where.folder / "chunkturns" / turns / "our-silver"),
            control_table=str(where.folder / "chunkturns" / turns / "our-control"))
        chain.bronze, chain.checkpoint, chain.facts = ours.bronze, ours.checkpoint, ours.facts
        chain.silver, chain.control = ours.folder / "silver", ours.folder / "control"
        self.asked = {"options": chain.options, "target": ours.bronze, "facts": ours.facts,
                      "app_id": f"{capture_instance}-{turns}"}

    def stream(self, who: str) -> None:
        if who == "o":
            must_run(self.ours)
        else:
            self.where.package.do("stream", checkpoint=self.ours.checkpoint, bootstrap=True,
                                  snapshot="chunked", **self.asked)

    def backfill(self, who: str, waves: int | None) -> None:
        if who == "p":
            more = {"max_waves": waves} if waves else {}
            self.where.package.do("backfill", chunk_rows=self.chunk_rows, target_wave_seconds=0,
                                  **more, **self.asked)
            return
        more = ("--max-waves", str(waves)) if waves else ()
        code, output = self.ours.run("backfill", (
            "--chunk-rows", str(self.chunk_rows), "--target-wave-seconds", "0", *more))
        self.tally.true(f"{self.turns}: our backfill", code in (0, 75), f"{code}: {output}")

    def check_facts(self) -> None:
        tally, turns = self.tally, self.turns
        facts = deltalake.DeltaTable(os.fspath(self.ours.facts)).to_pyarrow_table().to_pylist()
        for event in ("snapshot_open", "snapshot_plan", "bootstrap"):
            tally.equal(f"{turns}: one {event}", sum(row["event"] == event for row in facts), 1)
        chunks = [json.loads(row["detail"]) for row in facts if row["event"] == "snapshot_chunk"]
        tally.equal(f"{turns}: chunks, each once", sorted(chunk["chunk"] for chunk in chunks),
                    list(range(len(chunks))))
        tally.equal(f"{turns}: several waves", len({chunk["wave"] for chunk in chunks}) > 2, True)

    def check_silver(self) -> None:
        """The package's of the whole, and its checks of the chunks."""
        self.chain.apply()
        compare_silver(self.tally, self.turns, self.chain, "chunkturns",
                       self.capture_instance.replace("_", ".", 1), self.columns)
        told = self.chain.reconcile()
        self.tally.equal(f"{self.turns}: reconcile finds no difference", told["mismatch"], 0)
        self.tally.equal(f"{self.turns}: nor in the chunks", told["failures"], {})

    def check_our_silver(self) -> None:
        code, output = self.ours.run("apply")
        self.tally.equal(f"{self.turns}: mssql-cdc apply ({output[-300:]})", code, 0)
        self.chain.silver = self.ours.folder / "our-silver"
        compare_silver(self.tally, f"{self.turns}, ours", self.chain, "chunkturns",
                       self.capture_instance.replace("_", ".", 1), self.columns)


def chunks_in_turns(tally: Tally, where: Where) -> None:
    """One chunked snapshot, opened, planned and read by both in turns, while changes come."""
    simulator = where.simulator
    simulator.create("chunkturns", ORDERS, """CREATE TABLE dbo.lines (order_id int NOT NULL,
line_no smallint NOT NULL, sku varchar(20) NULL, PRIMARY KEY (order_id, line_no))""")
    for order in range(1, 60):
        rows = ", ".join(f"({order}, {line}, 's{order}-{line}')" for line in range(order % 5 + 1))
        simulator.run(f"INSERT dbo.lines (order_id, line_no, sku) VALUES {rows}")
    fill_orders(simulator, 1, 300)
    simulator.enable("orders")
    simulator.enable("lines")
    for number, turns in enumerate(TURNS):
        both = InTurns(tally, where, list(CHUNKED)[number % 2], turns)
        both.stream(turns[0])
        for who, waves in zip(turns[1:], (1, 1, None)):
            both.backfill(who, waves)
            simulator.run(f"UPDATE dbo.orders SET amount = amount + 1 WHERE id % 50 = {number}")
            simulator.run(f"UPDATE dbo.lines SET sku = 'new' WHERE order_id = {10 + number}")
            simulator.capture()
            both.stream("o" if who == "p" else "p")
        both.check_facts()
        if number < 2:  # One of each key.
            both.check_silver()
        both.check_our_silver()


def losses_in_turns(tally: Tally, where: Where) -> None:
    """Losses that one recovers and the other goes on from, in both modes."""
    simulator = where.simulator
    simulator.create("losses", ORDERS)
    fill_orders(simulator, 1, 60)
    simulator.enable("orders")
    for mode in ("full", "chunked"):
        chain = Chain(where, "losses", "dbo_orders")
        app_id = f"orders-{mode}"
        more = {"bootstrap": True, "snapshot": mode, "on_data_loss": "resnapshot",
                "resnapshot_interval_days": 0}
        ours = Pipeline(where.program, where.folder / "losses" / mode, simulator, "losses",
                        "dbo_orders", app_id, numPartitions="2", **more)
        chain.silver, chain.control = ours.folder / "silver", ours.folder / "control"
        chain.bronze, chain.facts = ours.bronze, ours.facts

        def turn(who: str) -> None:
            if who == "o":
                must_run(ours)
                if mode == "chunked":
                    ours.run("backfill", ("--chunk-rows", "20"))
                must_run(ours)
                return
            where.package.do("stream", options=chain.options, target=ours.bronze,
                             app_id=app_id, checkpoint=ours.checkpoint, facts=ours.facts, **more)
            if mode == "chunked":
                where.package.do("backfill", options=chain.options, target=ours.bronze,
                                 app_id=app_id, facts=ours.facts, chunk_rows=20)

        turn("o")
        for number, who in enumerate("popo"):
            simulator.run(f"UPDATE dbo.orders SET amount = {number} WHERE id < 5")
            simulator.capture()
            simulator.run(f"DELETE dbo.orders WHERE id = {40 + number}")
            simulator.capture()
            simulator.run("EXEC sim.cleanup @retention = 0")
            simulator.run(f"UPDATE dbo.orders SET amount = {number} WHERE id = 7")
            simulator.capture()
            turn(who)
            turn("o" if who == "p" else "p")
        state = json.loads((ours.checkpoint / "_mssql_cdc_generation.json").read_text())
        tally.equal(f"{mode}: generation", state["generation"], 4)
        facts = deltalake.DeltaTable(os.fspath(ours.facts)).to_pyarrow_table().to_pylist()
        tally.equal(f"{mode}: resnapshots", sorted(row["app_id"] for row in facts
                                                   if row["event"] == "resnapshot"),
                    [f"{app_id}.g{n}" for n in range(1, 5)])
        chain.apply()
        compare_silver(tally, f"losses, {mode}", chain, "losses", "dbo.orders", COLUMNS)
