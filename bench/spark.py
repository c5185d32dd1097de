"""The Python package on Spark against the existing package: cost of a trigger, and a backlog.

Both stream the same tables of one simulator in Spark sessions with the same settings, in turns, each
in an environment of its own. Measured is what the query's progress says: `triggerExecution` of
batches with 20 rows and of batches without rows, medians of the last of several, with where the
time goes; once with Delta's defaults and once with snapshotPartitions=1. Then a backlog of a
million changes of 10 columns: wall, CPU of the session's processes, their peak memory. The last
line is `trigger ratio: N`, the smaller of the two ratios for 20 rows.
"""

from __future__ import annotations

import argparse
import glob
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE), *(os.fspath(HERE.parent / "tests" / name)
                                   for name in ("harness", "values", "existing", "spark"))]

from existing_package import ORDERS, fill_orders  # noqa: E402
from line_worker import Package  # noqa: E402
from memory import COLUMNS, rows  # noqa: E402
from process_cost import PeakMemory, cpu_seconds  # noqa: E402
from simulator import Simulator  # noqa: E402

WORKER = HERE / "spark_side.py"
STEPS = ["latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets"]


class Side:
    """One package's session."""

    def __init__(self, name: str, worker: Package, folder: pathlib.Path) -> None:
        self.name, self.worker, self.folder = name, worker, folder

    def where(self, what: str) -> dict:
        base = self.folder / self.name / what
        return {"target": base / "bronze", "app_id": f"{what}-v1", "checkpoint": base / "checkpoint",
                "facts": base / "facts"}


def median_of(batches: list, key: str) -> float:
    return statistics.median(batch[2].get(key, 0) for batch in batches) if batches else float("nan")


def triggers(sides: list[Side], simulator: Simulator, partitions: int, count: int) -> dict:
    """Median milliseconds of a trigger for each side: {name: (20 rows, none)}."""
    what = f"trigger{partitions}"
    simulator.create(what, ORDERS, "CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)")
    fill_orders(simulator, 1, 100)
    simulator.enable("orders")
    simulator.enable("other")
    options = options_for(simulator, what, "dbo_orders")
    seen: dict[str, list] = {side.name: [] for side in sides}
    for side in sides:
        side.worker.do("run", code="spark.conf.set('spark.databricks.delta.snapshotPartitions', "
                       f"'{partitions}')")
        side.worker.do("start", query=what, options=options, bootstrap=True, **side.where(what))
        side.worker.do("catch_up", query=what)
    for number in range(count):
        fill_orders(simulator, 1000 * (number + 1), 20)
        simulator.capture()
        for side in sides:
            side.worker.do("catch_up", query=what)
        simulator.run(f"INSERT dbo.other VALUES ({number})")
        simulator.capture()
        for side in sides:
            seen[side.name] = side.worker.do("catch_up", query=what)
    made = {}
    for side in sides:
        side.worker.do("finish", query=what)
        with_rows = [batch for batch in seen[side.name] if batch[1] == 20][-count // 2:]
        # A poll that found nothing is no batch: it plans and writes nothing.
        empty = [batch for batch in seen[side.name] if batch[1] == 0 and batch[2].get("addBatch")]
        empty = empty[-count // 2:]
        made[side.name] = (median_of(with_rows, "triggerExecution"),
                           median_of(empty, "triggerExecution"))
        for kind, batches in (("20 rows", with_rows), ("no rows", empty)):
            steps = ", ".join(f"{step} {median_of(batches, step):.0f}" for step in STEPS)
            print(f"  snapshotPartitions={partitions}, {side.name}, {kind}: "
                  f"{median_of(batches, 'triggerExecution'):.0f} ms ({steps}; "
                  f"{len(batches)} batches)", flush=True)
    return made


def backlog(sides: list[Side], simulator: Simulator, row_count: int) -> None:
    simulator.create("backlog", f"CREATE TABLE dbo.big ({COLUMNS})")
    simulator.enable("big")
    each = row_count // 10
    for number in range(10):
        simulator.run(f"INSERT dbo.big {rows(1 + number * each, each)}")
        simulator.capture()
    walls = {}
    for side in sides:
        pid = side.worker.process.pid
        before, begun = cpu_seconds(pid), time.monotonic()
        with PeakMemory(pid) as memory:
            side.worker.do("stream", options=options_for(simulator, "backlog", "dbo_big"),
                           **side.where("backlog"))
        walls[side.name] = time.monotonic() - begun
        got = side.worker.do("run", code=f"result = spark.read.format('delta').load("
                             f"'{side.where('backlog')['target']}').count()")
        if got != row_count:
            raise SystemExit(f"{side.name} has {got} rows of {row_count}")
        print(f"  {side.name}: {row_count:,} changes in {walls[side.name]:.1f} s, "
              f"{cpu_seconds(pid) - before:.1f} CPU s, peak {memory.peak_mb:.0f} MB", flush=True)
    print(f"throughput ratio: {walls['existing'] / walls['ours']:.2f}")


def options_for(simulator: Simulator, database: str, capture_instance: str) -> dict:
    return {
        "connectionString": f"Server={simulator.host},{simulator.port};Database={database};"
        "Encrypt=yes;TrustServerCertificate=yes",
        "user": simulator.user, "password": simulator.password,
        "captureInstance": capture_instance,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True)
    parser.add_argument("--site", type=pathlib.Path, required=True)
    parser.add_argument("--jars", type=pathlib.Path, required=True)
    parser.add_argument("--peer", type=pathlib.Path, required=True,
                        help="Python of the environment that has the existing package")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=10)
    args = parser.parse_args()
    jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-bench-spark-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        sides = [
            Side("ours", Package(args.python, jars, folder / "ours.log", WORKER,
                                 PYTHONPATH=os.fspath(args.site)), folder),
            Side("existing", Package(args.peer, jars, folder / "existing.log", WORKER), folder),
        ]
        try:
            ratios = []
            for partitions in (50, 1):
                made = triggers(sides, simulator, partitions, args.batches)
                ratios.append(made["existing"][0] / made["ours"][0])
                print(f"snapshotPartitions={partitions}: 20 rows {ratios[-1]:.2f} times, "
                      f"no rows {made['existing'][1] / made['ours'][1]:.2f} times", flush=True)
            if args.rows:
                backlog(sides, simulator, args.rows)
            for side in sides:
                side.worker.stop()
        finally:
            for side in sides:
                side.worker.process.kill()
            simulator.stop()
    print(f"trigger ratio: {min(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
