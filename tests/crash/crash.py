"""Stops the local runtime everywhere and checks that nothing was lost, doubled or reordered.

Part 1: a small bootstrap and stream, stopped before its n-th write, create, rename, link, unlink,
truncate, fsync, mkdir, connect, send or receive, for every n (`--stride k`: every k-th), each also
with the n-th write torn in half. After the stop the run is started again, plainly, and must end
with bronze, facts and checkpoint equal to the model.
Part 2: a larger run, killed by SIGKILL at seeded moments.
Part 3: a second process on a checkpoint in use is refused.
Part 4: a chunked snapshot and its stream, `run` and `backfill` stopped in the same way.
Part 5: silver, `apply`, `optimize` and `reconcile --repair` stopped likewise (silver_crash.py).

The source is one simulator; the model is the generator's own record (model.py). The last line is
`N passed, N failed`; a failure prints the n or the seed, and the command that replays it alone.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import model  # noqa: E402
import verify  # noqa: E402
from silver_crash import every_operation_on_silver  # noqa: E402
from pipeline import RECONFIGURE, RETRY, Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

APP_ID = "items-v1"


class CrashPipeline(Pipeline):
    """A stream of dbo_items whose end state is checked against a History."""

    def __init__(self, program, folder, source, database, **options) -> None:
        super().__init__(program, folder, source, database, "dbo_items", APP_ID, **options)

    def finish(self) -> None:
        code, output = self.run()
        if code != 0:
            raise verify.Wrong(f"a plain restart ended with {code}:\n{output}")

    def check(self, snapshot, commits) -> None:
        counts = verify.check_bronze(self.bronze, snapshot, commits, APP_ID)
        verify.check_facts(self.facts, counts, APP_ID)
        verify.check_checkpoint(self.checkpoint)


class Tally:
    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def case(self, name: str, replay: str, body) -> bool:
        try:
            body()
        except (verify.Wrong, subprocess.TimeoutExpired, OSError) as wrong:
            self.failed += 1
            print(f"FAILED {name}\n  {wrong}\n  replay: {replay}", flush=True)
            return False
        self.passed += 1
        return True


def build_shim(folder: pathlib.Path) -> pathlib.Path:
    shim = folder / "crash_shim.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", "-o", shim, HERE / "crash_shim.c", "-ldl"], check=True
    )
    return shim


def every_operation(args, simulator: Simulator, shim: pathlib.Path, work: pathlib.Path, tally: Tally) -> None:
    """Part 1. The lake is new for each n; the source goes on living."""
    database = "every_op"
    simulator.create(database, model.CREATE)
    history = model.History(seed=1)
    for statement in history.load(12):
        simulator.run(statement)
    simulator.enable("items")

    def one(number: int, torn: bool) -> tuple[bool, int]:
        """Runs one case; returns whether the stop was reached, and the operations counted."""
        folder = work / f"n{number}{'t' if torn else ''}"
        pipeline = CrashPipeline(args.program, folder, simulator, database, maxCommitsPerBatch=3)
        log = folder / "count"
        shimmed = {"LD_PRELOAD": os.fspath(shim), "CRASH_SHIM_LOG": os.fspath(log)}
        if torn:
            shimmed["CRASH_SHIM_TORN"] = "1"
        snapshot = dict(history.rows)
        code, output = pipeline.run(CRASH_SHIM_AT=str(number), **shimmed)
        stopped = code == 137
        if not stopped and code != 0:
            raise verify.Wrong(f"bootstrap ended with {code}:\n{output}")
        used = 0 if stopped else int(log.read_text())
        if stopped:
            pipeline.finish()
        first_commit = len(history.commits)
        for _ in range(5):
            simulator.run(history.transaction())
        simulator.capture()
        if stopped:
            pipeline.finish()
        else:
            code, output = pipeline.run(CRASH_SHIM_AT=str(max(number - used, 0)), **shimmed)
            stopped = code == 137
            if not stopped and code != 0:
                raise verify.Wrong(f"stream ended with {code}:\n{output}")
            used += 0 if stopped else int(log.read_text())
            if stopped:
                pipeline.finish()
        pipeline.check(snapshot, history.commits[first_commit:])
        shutil.rmtree(folder)
        return stopped, used

    if args.only:
        for torn in (False, True):
            tally.case(f"n={args.only} torn={torn}", "", lambda t=torn: one(args.only, t))
        return
    total = one(10**9, False)[1]
    print(f"a small bootstrap and stream has {total} operations", flush=True)
    begun = time.monotonic()
    reached = 0
    for number in range(1, total + 1, args.stride):
        for torn in (False, True) if args.stride == 1 or number % (2 * args.stride) == 1 else (False,):
            result: list[bool] = []
            tally.case(
                f"stopped at operation {number} of {total}{' (torn)' if torn else ''}",
                f"./dev crash --only {number}",
                lambda n=number, t=torn: result.append(one(n, t)[0]),
            )
            reached += bool(result and result[0])
    print(
        f"part 1: stride {args.stride}, {reached} stops reached, {time.monotonic() - begun:.0f} s",
        flush=True,
    )


def seeded_kills(args, simulator: Simulator, work: pathlib.Path, tally: Tally) -> None:
    """Part 2. A larger table, a writer at work, SIGKILL at seeded moments, then the end state."""
    database = "kills"
    simulator.create(database, model.CREATE)
    history = model.History(seed=args.seed)
    for statement in history.load(400):
        simulator.run(statement)
    simulator.enable("items")
    snapshot = dict(history.rows)
    pipeline = CrashPipeline(args.program, work / "kills", simulator, database, maxCommitsPerBatch=20)
    dice = random.Random(args.seed)
    killed = 0

    def go() -> None:
        nonlocal killed
        # The snapshot must be that of `snapshot`: nothing is written before a run is whole.
        while kill_after(pipeline.start(), dice.random() * 0.1):
            killed += 1
            if killed > args.kills // 4:
                pipeline.finish()
                break
        while killed < args.kills:
            for _ in range(dice.randrange(1, 40)):
                simulator.run(history.transaction())
            simulator.capture()
            killed += kill_after(pipeline.start(), dice.random() * 0.35)
        pipeline.finish()
        pipeline.check(snapshot, history.commits)

    tally.case(f"{args.kills} kills, seed {args.seed}", f"./dev crash --seed {args.seed}", go)
    print(
        f"part 2: {killed} SIGKILLs, {len(history.commits)} commits, "
        f"{sum(map(len, history.commits))} changes",
        flush=True,
    )


def kill_after(process: subprocess.Popen, delay_s: float) -> int:
    """Kills `process` after the delay; 1 if it was still alive then, else 0."""
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return 1
    output = process.communicate()[0]
    if process.returncode != 0:
        raise verify.Wrong(f"a run ended with {process.returncode}:\n{output}")
    return 0


def second_process(args, simulator: Simulator, work: pathlib.Path, tally: Tally) -> None:
    """Part 3."""
    pipeline = CrashPipeline(args.program, work / "second", simulator, "kills", trigger=None)

    def go() -> None:
        first = pipeline.start()
        try:
            deadline = time.monotonic() + 30
            while not (pipeline.folder / "checkpoint" / "commits").exists():
                if time.monotonic() > deadline or first.poll() is not None:
                    raise verify.Wrong("the first process did not get going")
                time.sleep(0.02)
            code, output = pipeline.run()
            if code != RECONFIGURE or "MC5001" not in output:
                raise verify.Wrong(f"the second process ended with {code}:\n{output}")
        finally:
            first.kill()
            first.communicate()

    tally.case("a second process on one checkpoint is refused", "./dev crash", go)


def every_operation_in_chunks(args, simulator: Simulator, shim: pathlib.Path, work: pathlib.Path,
                              tally: Tally) -> None:
    """Part 4: opening, planning, waves and completion."""
    database = "in_chunks"
    simulator.create(database, model.CREATE)
    history = model.History(seed=4)
    for statement in history.load(24):
        simulator.run(statement)
    simulator.enable("items")
    waves = ("--chunk-rows", "5", "--target-wave-seconds", "0", "--max-waves", "2")
    # The table grows with each case, and so does the number of calls it takes.
    commands = [("run", ())] + [("backfill", waves)] * 100

    def one(number: int) -> tuple[bool, int]:
        folder = work / f"c{number}"
        pipeline = CrashPipeline(args.program, folder, simulator, database, snapshot="chunked",
                                 numPartitions="2")
        log = folder / "count"
        shimmed = {"LD_PRELOAD": os.fspath(shim), "CRASH_SHIM_LOG": os.fspath(log)}
        snapshot = dict(history.rows)
        used, stopped = 0, False
        for command, arguments in commands:
            if not stopped:
                code, output = pipeline.run(command, arguments,
                                            CRASH_SHIM_AT=str(max(number - used, 0)), **shimmed)
                stopped = code == 137
                if not stopped:
                    used += int(log.read_text())
            if stopped:
                code, output = pipeline.run(command, arguments)
            if code not in (0, RETRY):
                raise verify.Wrong(f"{command} ended with {code}:\n{output}")
            if command == "backfill" and code == 0:
                break
        if code != 0:
            raise verify.Wrong(f"the snapshot is not done:\n{output}")
        for _ in range(3):
            simulator.run(history.transaction())
        simulator.capture()
        pipeline.finish()
        verify.check_chunked(pipeline.bronze, pipeline.facts, snapshot, history.rows, APP_ID)
        verify.check_checkpoint(pipeline.checkpoint)
        shutil.rmtree(folder)
        return stopped, used

    total = one(10**9)[1]
    begun = time.monotonic()
    reached = 0
    stride = args.stride if args.stride == 1 else 3 * args.stride  # A case is dear.
    for number in range(1, total + 1, stride):
        result: list[bool] = []
        tally.case(f"in chunks, stopped at operation {number} of {total}", "./dev crash",
                   lambda n=number: result.append(one(n)[0]))
        reached += bool(result and result[0])
    print(f"part 4: {total} operations, stride {stride}, {reached} stops reached, "
          f"{time.monotonic() - begun:.0f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--part", type=int, choices=range(1, 6), help="this part alone")
    parser.add_argument("--only", type=int, help="part 1, stopped at this operation")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-crash-") as name:
        work = pathlib.Path(name)
        shim = build_shim(work)
        simulator = Simulator(args.program, work, "--seed", "7")
        try:
            parts = [lambda: every_operation(args, simulator, shim, work, tally),
                     lambda: seeded_kills(args, simulator, work, tally),
                     lambda: second_process(args, simulator, work, tally),
                     lambda: every_operation_in_chunks(args, simulator, shim, work, tally),
                     lambda: every_operation_on_silver(args, simulator, shim, work, tally)]
            part = 1 if args.only else args.part
            for work_of_part in parts[part - 1:part] if part else parts:
                work_of_part()
        finally:
            simulator.stop()
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
