"""What it costs to bring silver up to date: ours against the existing package on Spark, one run.

A silver of 10 million rows is written straight into Delta, as is a bronze with a million changed
keys (six tenths updates, the rest inserts and deletes, spread over the whole table). Each side
applies it to a copy of its own, in a process of its own: the local binary, the Python package on
Spark, the existing package on Spark. Wall time, CPU and peak memory are the kernel's (on Spark: of
the session's processes, its start not counted). Then ten thousand changes more. All silvers must
agree in number, sums and keys. The last line is `apply ratio: N`, wall time theirs by the local
binary's for the million.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE), os.fspath(HERE.parent / "tests" / "harness")]

import deltalake  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
from deltalake import QueryBuilder  # noqa: E402
from line_worker import Package  # noqa: E402
from process_cost import PeakMemory, cpu_seconds  # noqa: E402

BEGAN = np.datetime64("2026-01-01T00:00:00", "us")
DATA = [("id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(18, 2)),
        ("quantity", pa.int32()), ("status", pa.string()), ("note", pa.string()),
        ("changed_at", pa.timestamp("us"))]
SILVER = pa.schema([*DATA, ("_start_lsn", pa.string()), ("_commit_ts", pa.timestamp("us"))])
BRONZE = pa.schema([("_capture_instance", pa.string()), ("_start_lsn", pa.string()),
                    ("_seqval", pa.string()), ("_operation", pa.int32()), ("_command_id", pa.int32()),
                    ("_commit_ts", pa.timestamp("us")), *DATA, ("_batch_id", pa.int32()),
                    ("_snapshot", pa.string()), ("_chunk", pa.int32())])
CONTROL = pa.schema([("table_name", pa.string()), ("finalized_until", pa.timestamp("us")),
                     ("end_lsn", pa.string()), ("end_commit_ts", pa.timestamp("us")),
                     ("updated_at", pa.timestamp("us")), ("applied_lsn", pa.string()),
                     ("snapshot_lsn", pa.string()), ("open_snapshot_lsn", pa.string()),
                     ("snapshot_wave", pa.int32())])
STATUSES = np.array(["placed", "paid", "sent", "delivered", "returned"])


def lsn(numbers: np.ndarray) -> pa.Array:
    return pa.array([f"0x{number:020X}" for number in numbers.tolist()])


def data(ids: np.ndarray, generation: int) -> list[pa.Array]:
    amount = pa.array(ids * 7 % 1_000_000 + generation, pa.int64())
    return [pa.array(ids), pa.array(np.char.add("customer ", (ids % 100_000).astype(str))),
            amount.cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 2)),
            pa.array((ids % 90 + generation).astype(np.int32)), pa.array(STATUSES[ids % 5]),
            pa.array(np.char.add(f"note {generation} of ", ids.astype(str))),
            pa.array(BEGAN + ids % 10_000_000 * np.timedelta64(1, "s"))]


def constant(value, count: int, kind) -> pa.Array:
    return pa.array([value], kind).take(pa.array(np.zeros(count, np.int64)))


def write_silver(path: pathlib.Path, rows: int, part: int = 500_000) -> None:
    def batches():
        for first in range(0, rows, part):
            ids = np.arange(first, min(first + part, rows), dtype=np.int64)
            yield pa.record_batch(
                [*data(ids, 0), constant(f"0x{1:020X}", len(ids), pa.string()),
                 constant(BEGAN, len(ids), pa.timestamp("us"))], schema=SILVER)

    reader = pa.RecordBatchReader.from_batches(SILVER, batches())
    deltalake.write_deltalake(os.fspath(path), reader, target_file_size=64 << 20)


def append_changes(path: pathlib.Path, rows: int, count: int, first_lsn: int, seed: int) -> None:
    """`count` keys change: 6 of 10 are updated, 2 deleted, 2 inserted; 1,000 keys a commit."""
    random = np.random.default_rng(seed)
    old = random.permutation(rows)[: count * 8 // 10].astype(np.int64)
    fresh = np.arange(rows + seed * 10_000_000, rows + seed * 10_000_000 + count - len(old),
                      dtype=np.int64)
    updated, deleted = old[: count * 6 // 10], old[count * 6 // 10:]
    ids = np.concatenate([updated, updated, deleted, fresh])
    operations = np.concatenate([np.full(len(updated), 3), np.full(len(updated), 4),
                                 np.full(len(deleted), 1), np.full(len(fresh), 2)]).astype(np.int32)
    place = np.concatenate([np.arange(len(updated)), np.arange(len(updated)),
                            len(updated) + np.arange(len(deleted) + len(fresh))])
    generation = np.where(operations == 3, 0, np.where(operations == 1, 0, 1))
    order = np.lexsort((operations, place))
    ids, operations, place = ids[order], operations[order], place[order]
    generation = generation[order]
    number = first_lsn + place // 1000
    after, before = data(ids, 1), data(ids, 0)
    mask = pa.array(generation == 1)
    chosen = [pc.if_else(mask, a, b) for a, b in zip(after, before)]
    n = len(ids)
    table = pa.table(
        [constant("dbo_t", n, pa.string()), lsn(number), lsn(place + 1), pa.array(operations),
         constant(1, n, pa.int32()), pa.array(BEGAN + number * np.timedelta64(1, "s")), *chosen,
         constant(seed, n, pa.int32()), pa.nulls(n, pa.string()), pa.nulls(n, pa.int32())],
        schema=BRONZE)
    deltalake.write_deltalake(os.fspath(path), table, mode="append", target_file_size=32 << 20)


class Side:
    """A folder with copies of the tables, and how it is told to apply."""

    def __init__(self, folder: pathlib.Path, silver: pathlib.Path, bronze: pathlib.Path) -> None:
        self.folder, self.silver, self.bronze = folder, folder / "silver", bronze
        self.control = folder / "control"
        folder.mkdir()
        shutil.copytree(silver, self.silver)
        row = pa.table([[os.fspath(self.silver)], *([None] for _ in range(4)), [f"0x{1:020X}"],
                        [f"0x{1:020X}"], [None], [None]], schema=CONTROL)
        deltalake.write_deltalake(os.fspath(self.control), row)

    def written_mb(self, since: set[str]) -> float:
        return sum(os.path.getsize(path) for path in self.files() - since) / 1e6

    def files(self) -> set[str]:
        return set(glob.glob(os.fspath(self.silver / "**" / "*"), recursive=True))


class Ours(Side):
    def __init__(self, program: pathlib.Path, vectors: bool, *places) -> None:
        super().__init__(*places)
        self.program = program
        (self.folder / "pipeline.toml").write_text(
            "[source]\nconnectionString = \"Server=nowhere;Database=none\"\nuser = \"nobody\"\n"
            "password = \"none\"\n[[stream]]\ncaptureInstance = \"dbo_t\"\napp_id = \"t\"\n"
            f"target = {json.dumps(os.fspath(self.bronze))}\ncheckpoint = \"none/checkpoint\"\n"
            f"silver = {json.dumps(os.fspath(self.silver))}\n"
            f"control_table = {json.dumps(os.fspath(self.control))}\nkeys = \"id\"\n")
        if vectors:
            subprocess.run([program, "optimize", "--table", self.silver, "--enable-dv",
                            "--small-mb", "1"], check=True, stdout=subprocess.DEVNULL)

    def apply(self) -> dict:
        before = self.files()
        begun = time.monotonic()
        process = subprocess.Popen(
            [self.program, "apply", "--offline", "--log", "json", self.folder / "pipeline.toml"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Not the kernel's own maximum: that begins with this process's size, before exec.
        with PeakMemory(process.pid, every=0.02) as memory:
            output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"apply failed:\n{output}")
        return {"wall": time.monotonic() - begun, "cpu": usage.ru_utime + usage.ru_stime,
                "peak_mb": memory.peak_mb, "written_mb": self.written_mb(before)}


class OnSpark(Side):
    def __init__(self, package: Package, *places) -> None:
        super().__init__(*places)
        self.package = package

    def apply(self) -> dict:
        pid, before = self.package.process.pid, self.files()
        cpu, begun = cpu_seconds(pid), time.monotonic()
        with PeakMemory(pid) as memory:
            self.package.do("apply", bronze=self.bronze, silver=self.silver, control=self.control,
                            facts=None, options=None, capture_instance="dbo_t", keys=["id"])
        return {"wall": time.monotonic() - begun, "cpu": cpu_seconds(pid) - cpu,
                "peak_mb": memory.peak_mb, "written_mb": self.written_mb(before)}


def show(what: str, cost: dict) -> None:
    print(f"{what}: {cost['wall']:.2f} s, {cost['cpu']:.2f} CPU s, peak {cost['peak_mb']:.0f} MB, "
          f"{cost['written_mb']:.1f} MB written", flush=True)


def digest(path: pathlib.Path) -> list[dict]:
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    return pa.table(engine.execute(
        "SELECT count(*) n, count(DISTINCT id) keys, sum(id) ids, sum(amount) amount, "
        "sum(quantity) quantity, max(_start_lsn) lsn, sum(length(note)) notes FROM t"
    ).read_all()).to_pylist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True,
                        help="Python of an environment with Spark")
    parser.add_argument("--site", type=pathlib.Path, required=True, help="the wheel, unpacked")
    parser.add_argument("--peer", type=pathlib.Path, required=True,
                        help="Python of the environment that has the existing package")
    parser.add_argument("--jars", type=pathlib.Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--only-ours", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-silver-") as name:
        folder = pathlib.Path(name)
        silver, bronze = folder / "silver", folder / "bronze"
        write_silver(silver, args.rows)
        append_changes(bronze, args.rows, args.changes, first_lsn=10, seed=1)
        size_mb = sum(path.stat().st_size for path in silver.glob("*.parquet")) / 1e6
        print(f"(silver: {args.rows:,} rows, {size_mb:.0f} MB, "
              f"{len(list(silver.glob('*.parquet')))} files)", flush=True)
        sides = {"ours": Ours(args.program, True, folder / "ours", silver, bronze),
                 "ours, no deletion vectors": Ours(args.program, False, folder / "old", silver, bronze)}
        packages = []
        if not args.only_ours:
            jars = ",".join(sorted(glob.glob(os.fspath(args.jars / "*.jar"))))
            worker = HERE / "spark_side.py"
            packages = [Package(args.python, jars, folder / "ours.log", worker,
                                PYTHONPATH=os.fspath(args.site)),
                        Package(args.peer, jars, folder / "theirs.log", worker)]
            for side, package in zip(("ours on Spark", "theirs"), packages):
                package.do("version")
                sides[side] = OnSpark(package, folder / side.replace(" ", "-"), silver, bronze)
        shutil.rmtree(silver)
        costs = {}
        for count in (args.changes, args.few):
            if count == args.few:
                append_changes(bronze, args.rows, args.few, first_lsn=10_000_000, seed=2)
            for side, work in sides.items():
                costs[side, count] = work.apply()
                show(f"{count:,} changes, {side}", costs[side, count])
        digests = {side: digest(work.silver) for side, work in sides.items()}
        for package in packages:
            package.stop()
        for side, found in digests.items():
            if found != digests["ours"]:
                raise SystemExit(f"silver differs: {side} has {found}, ours {digests['ours']}")
        print(f"(all silvers agree: {digests['ours'][0]['n']:,} rows)")
    if not args.only_ours:
        for side in ("ours on Spark", "ours"):
            for what, count in (("few", args.few), ("apply", args.changes)):
                ratio = costs["theirs", count]["wall"] / costs[side, count]["wall"]
                print(f"{what} ratio{side.removeprefix('ours')}: {ratio:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
