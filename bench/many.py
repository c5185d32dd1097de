"""What many tables cost: 200 of one server in one `mssql-cdc run`, bronze and silver, 5 of them active.

`run` and the simulator are processes of their own; what passes between them is counted as in
idle.py. A writer commits one row after the other in turn into the active tables and runs the
capture after each. A change counts from before its capture until `run` tells that it is committed
in bronze, and in silver. The last line is `p99 ms to bronze: N`; ten minutes and some by default.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE), os.fspath(HERE.parent / "tests" / "harness")]

from idle import Counter, cpu_seconds, create_tables, resident_mb  # noqa: E402
from simulator import Simulator  # noqa: E402

STREAM = """[[stream]]
captureInstances = ["dbo_t*"]
target = "{folder}/bronze/{{ci}}"
app_id = "{{ci}}"
checkpoint = "{folder}/checkpoints/{{ci}}"
facts_table = "{folder}/facts"
silver = "{folder}/silver/{{ci}}"
control_table = "{folder}/control"
"""


class Watched:
    """What `run` tells of each stream: when the n-th change was in bronze, and in silver."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.idle: set[str] = set()
        self.seen: dict[str, dict[str, list[float]]] = {"bronze": {}, "silver": {}}
        self.errors: list[str] = []
        self.lock = threading.Lock()
        threading.Thread(target=self.read, args=(process,), daemon=True).start()

    def read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            at = time.monotonic()
            try:
                event = json.loads(line)
            except ValueError:
                self.errors.append(line)
                continue
            with self.lock:
                self.take(at, event)

    def take(self, at: float, event: dict) -> None:
        stream, name = event.get("stream", ""), event.get("event")
        if name == "idle":
            self.idle.add(stream)
        elif name == "silver_done":
            self.seen["silver"].setdefault(stream, []).extend([at] * event["window_rows"])
        elif name == "batch_done":
            self.seen["bronze"].setdefault(stream, []).extend([at] * event["rows"])
        elif event.get("level") == "error" or name == "error":
            self.errors.append(json.dumps(event))

    def count(self, layer: str) -> int:
        with self.lock:
            return sum(map(len, self.seen[layer].values()))


def share(sorted_ms: list[float], part: float) -> float:
    return sorted_ms[int(part * (len(sorted_ms) - 1))]


def latencies(watched: Watched, begun: dict[str, list[float]], layer: str) -> list[float]:
    found = []
    for stream, starts in begun.items():
        found += [(end - start) * 1000 for start, end in zip(starts, watched.seen[layer].get(stream, []))]
    return sorted(found)


def write(simulator: Simulator, active: int, per_second: float, seconds: float) -> dict[str, list[float]]:
    begun: dict[str, list[float]] = {}
    start = time.monotonic()
    for number in range(int(seconds * per_second)):
        time.sleep(max(0.0, start + number / per_second - time.monotonic()))
        table = number % active
        simulator.run(f"INSERT dbo.t{table} VALUES ({number}, N'row {number}')")
        begun.setdefault(f"dbo_t{table}", []).append(time.monotonic())
        simulator.capture()
    return begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--active", type=int, default=5)
    parser.add_argument("--per-second", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=600)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-many-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        create_tables(simulator, "many", args.tables, "id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL")
        counter = Counter(simulator.port)
        file = folder / "pipeline.toml"
        text = f"Server=127.0.0.1,{counter.port};Database=many;{simulator.encryption}"
        file.write_text(f"[source]\nconnectionString = {json.dumps(text)}\nuser = \"{simulator.user}\"\n"
                        "password = { env = \"PIPELINE_PASSWORD\" }\n" + STREAM.format(folder=folder))
        process = subprocess.Popen([args.program, "run", file, "--log", "json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, PIPELINE_PASSWORD=simulator.password))
        try:
            watched = Watched(process)
            begun = time.monotonic()
            while len(watched.idle) < args.tables and process.poll() is None:
                time.sleep(0.2)
            print(f"{args.tables} streams were idle {time.monotonic() - begun:.1f} s after the start", flush=True)
            statements, cpu, begun = counter.statements, cpu_seconds(process.pid), time.monotonic()
            started = write(simulator, args.active, args.per_second, args.seconds)
            seconds = time.monotonic() - begun
            wrote = sum(map(len, started.values()))
            print(f"{wrote} changes in {seconds:.0f} s: {(counter.statements - statements) / seconds:.1f} statements "
                  f"a second, {(cpu_seconds(process.pid) - cpu) / seconds * 100:.1f} % of a CPU, "
                  f"{counter.sessions} sessions, {resident_mb(process.pid):.0f} MB resident", flush=True)
            for _ in range(150):
                if min(watched.count("bronze"), watched.count("silver")) >= wrote:
                    break
                time.sleep(0.2)
            by_layer = {layer: latencies(watched, started, layer) for layer in ("silver", "bronze")}
            for layer, sorted_ms in by_layer.items():
                print(f"{layer}: {len(sorted_ms)} of {wrote} changes, p50 {share(sorted_ms, 0.5):.0f} ms, "
                      f"p90 {share(sorted_ms, 0.9):.0f} ms, max {sorted_ms[-1]:.0f} ms; "
                      f"p99 {share(sorted_ms, 0.99):.0f} ms")
        finally:
            process.terminate()
            code = process.wait(60)
            simulator.stop()
    for error in watched.errors[:5]:
        print(f"told: {error.strip()}")
    print(f"`run` ended with {code}")
    print(f"p99 ms to bronze: {share(by_layer['bronze'], 0.99):.1f}")
    return 0 if code == 0 and len(by_layer["silver"]) == len(by_layer["bronze"]) == wrote else 1


if __name__ == "__main__":
    sys.exit(main())
