"""Backend `fake` beside `native`: one history in the existing package's files, read in process by the one
and through the simulator, which imports it, over TDS by the other. Bronze must be equal, every column of it.

The history is written by the existing package itself. The last line is `N passed, N failed`. Some 15 s.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import deltalake

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

from pipeline import Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

CASES = {
    "changes of the table with two instances": {"captureInstance": "dbo_orders", "bootstrap": False},
    "the same from the newer instance's name, in small batches": {
        "captureInstance": "dbo_orders_v2", "bootstrap": False, "maxCommitsPerBatch": 1, "arrowBatchSize": 7},
    "a snapshot": {"captureInstance": "dbo_orders", "bootstrap": True, "numPartitions": 4},
    "a snapshot cut on another column": {"captureInstance": "dbo_orders", "bootstrap": True, "numPartitions": 3,
                                         "snapshotKeys": '["SMALL"]'},
    "a chunked snapshot": {"captureInstance": "dbo_orders", "bootstrap": True, "snapshot": "chunked"},
    "a composite key": {"captureInstance": "dbo_lines", "bootstrap": True},
    "a composite key in ranges": {"captureInstance": "dbo_lines", "bootstrap": True, "numPartitions": 3},
    "a composite key in chunks": {"captureInstance": "dbo_lines", "bootstrap": True, "snapshot": "chunked"},
    "a composite key's changes": {"captureInstance": "DBO_LINES", "bootstrap": False},
    "a table without a key": {"captureInstance": "dbo_log", "bootstrap": False},
    "some columns, in other types": {"captureInstance": "dbo_orders", "bootstrap": False,
                                     "columns": "amount STRING, order_id BIGINT, discount DECIMAL(12,6)"},
    "without command ids": {"captureInstance": "dbo_orders", "bootstrap": False, "includeCommandId": False},
}
# What a fake's directory does not give is said before anything is written.
REFUSED = {
    "no fakePath": ({"fakePath": None}, "MC6003", "fakePath"),
    "a directory without a fake": ({"fakePath": "{folder}/nothing"}, "MC5008", "min_lsn.json"),
    "an unknown instance": ({"captureInstance": "dbo_order"}, "MC3004", "dbo_orders"),
    "a broken file": ({"fakePath": "{folder}/broken"}, "MC5008", "instances.json"),
}


def rows(table: pathlib.Path) -> list[tuple]:
    columns = deltalake.DeltaTable(table).to_pyarrow_table()
    names = sorted(columns.column_names)
    return sorted(map(repr, columns.select(names).to_pylist()))


def commands(options: dict) -> list[tuple[str, ...]]:
    chunked = options.get("snapshot") == "chunked"
    return [("run",)] + [("backfill", "--chunk-rows", "5", "--target-wave-seconds", "0", "--max-waves", "100")] * chunked


def run_fake(program: pathlib.Path, folder: pathlib.Path, options: dict) -> tuple[int, str]:
    folder.mkdir(parents=True)
    stream = {"target": f"{folder}/bronze", "app_id": "fake", "checkpoint": f"{folder}/checkpoint",
              "facts_table": f"{folder}/facts", "trigger": "availableNow", "backend": "fake", **options}
    file = folder / "pipeline.toml"
    file.write_text("[[stream]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in stream.items()
                                             if value is not None))
    output = ""
    for command, *arguments in commands(options):
        done = subprocess.run([program, command, file, *arguments], capture_output=True, text=True, timeout=120)
        output += done.stdout + done.stderr
        if done.returncode != 0:
            break
    return done.returncode, output


def compare(program, folder: pathlib.Path, history: pathlib.Path, simulator: Simulator, options: dict) -> list[str]:
    code, output = run_fake(program, folder / "fake", {"fakePath": str(history), **options})
    if code != 0:
        return [f"fake ended with {code}:\n{output}"]
    native = Pipeline(program, folder / "native", simulator, "fake", options["captureInstance"], "native",
                      **{name: value for name, value in options.items() if name != "captureInstance"})
    for command, *arguments in commands(options):
        code, output = native.run(command, tuple(arguments))
        if code != 0:
            return [f"native {command} ended with {code}:\n{output}"]
    ours, theirs = rows(folder / "fake/bronze"), rows(native.bronze)
    if not ours:
        return ["bronze is empty"]
    differing = sorted(set(ours) ^ set(theirs))
    return [] if ours == theirs else [f"{len(ours)} rows of fake, {len(theirs)} of native, such as\n" +
                                      "\n".join(differing[:4])]


def refuse(program, folder: pathlib.Path, history: pathlib.Path, options: dict, code: str, says: str) -> list[str]:
    options = {name: value.replace("{folder}", str(folder.parent)) if isinstance(value, str) else value
               for name, value in options.items()}
    options = {"captureInstance": "dbo_orders", "fakePath": str(history), **options}
    _, output = run_fake(program, folder, options)
    wrong = [f"it does not say {text}:\n{output}" for text in (code, says) if text not in output]
    return wrong + (["something was written"] if (folder / "bronze").exists() else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True, help="the one that has the existing package")
    args = parser.parse_args()
    results: list[tuple[str, list[str]]] = []
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-fake-") as name:
        folder = pathlib.Path(name)
        history = folder / "history"
        subprocess.run([args.python, HERE / "write_history.py", history], check=True)
        (folder / "nothing").mkdir()
        broken = folder / "broken"
        broken.mkdir()
        (broken / "min_lsn.json").write_text('{"dbo_orders": "0x0000002A000001000001"}')
        (broken / "instances.json").write_text('{"dbo_orders": ')
        # What the history does not date is as old as the import: that comes first.
        simulator = Simulator(args.program, folder / "sim", "--import-fake", str(history),
                              "--clock", "2026-11-20T07:00:00")
        try:
            for number, (what, options) in enumerate(CASES.items()):
                results.append((what, compare(args.program, folder / str(number), history, simulator, options)))
        finally:
            simulator.stop()
        for number, (what, (options, code, says)) in enumerate(REFUSED.items()):
            results.append((what, refuse(args.program, folder / f"refused{number}", history, options, code, says)))
    for what, wrong in results:
        for text in wrong:
            print(f"FAILED {what}: {text}")
    failed = sum(bool(wrong) for _, wrong in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
