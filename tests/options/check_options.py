"""Options of this program alone: one [[stream]] for many tables, and what an update wrote.

A pattern must become a stream for each table, with everything below the names of its own; one whose
table is gone must stop alone, with its error at the end. `_changed_columns`, `_unknown_columns` and
filled large values are compared with what the statements did. The last line is
`N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

import deltalake  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltalake import QueryBuilder  # noqa: E402
from pipeline import RECONFIGURE, USAGE, Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402
from tally import Tally  # noqa: E402

TABLES = ("a", "b", "c", "Gone")


def rows(path: pathlib.Path) -> list[dict]:
    engine = QueryBuilder().register("t", deltalake.DeltaTable(os.fspath(path)))
    return pa.table(engine.execute("SELECT * FROM t").read_all()).to_pylist()


class Many:
    """A pipeline file with one [[stream]] for several tables, and perhaps more behind it."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator, instances,
                 more: str = "", **settings) -> None:
        self.program, self.folder, self.simulator = program, folder, simulator
        self.start = folder
        folder.mkdir()
        text = f"Server={simulator.host},{simulator.port};Database=many;{simulator.encryption}"
        stream = {"captureInstances": instances, "target": "bronze/{ci}", "app_id": "{ci}-v1",
                  "checkpoint": "checkpoints/{ci}", "facts_table": "./facts", "bootstrap": True,
                  "silver": "silver/{ci}", "control_table": "./control"} | settings
        self.file = folder / "pipeline.toml"
        self.file.write_text(
            f"[source]\nconnectionString = {json.dumps(text)}\nuser = \"{simulator.user}\"\n"
            "password = { env = \"PIPELINE_PASSWORD\" }\ntrigger = \"availableNow\"\nretries = 0\n"
            "[[stream]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in stream.items()
                                     if value is not None) + more)

    def run(self, command: str = "run") -> tuple[int, list[dict]]:
        done = subprocess.run([self.program.absolute(), command, self.file, "--log", "json"], text=True, cwd=self.start,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                              env=dict(os.environ, PIPELINE_PASSWORD=self.simulator.password))
        events = []
        for line in done.stdout.splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                events.append({"text": line})
        return done.returncode, events


def many_tables(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    simulator.create("many", *(f"CREATE TABLE dbo.{name} (id int NOT NULL PRIMARY KEY)" for name in TABLES))
    for name in TABLES:
        simulator.run(f"INSERT dbo.{name} VALUES (1)")
        simulator.enable(name)
    many = Many(program, folder / "many", simulator, ["dbo_*", "none_*"])
    code, events = many.run()
    tally.equal(f"a pattern: exit code ({events[-3:]})", code, 0)
    tally.equal("a pattern that matches nothing is told",
                sum("none_*" in json.dumps(event) for event in events), 1)
    for name in TABLES:
        for layer in ("bronze", "silver", "checkpoints"):
            tally.equal(f"{name}: {layer}", (many.folder / layer / f"dbo_{name}").is_dir(), True)
        tally.equal(f"{name}: silver", [row["id"] for row in rows(many.folder / f"silver/dbo_{name}")], [1])
    tally.equal("one facts table", {row["app_id"] for row in rows(many.folder / "facts")},
                {f"dbo_{name}-v1" for name in TABLES})
    # A newer instance is no table of its own; a table that is gone is listed no more.
    simulator.run("EXEC sys.sp_cdc_enable_table N'dbo', N'a', @capture_instance = N'dbo_a_2', "
                  "@role_name = NULL")
    simulator.run("EXEC sys.sp_cdc_disable_table N'dbo', N'Gone', N'dbo_Gone'")
    for name in ("a", "b", "c"):
        simulator.run(f"INSERT dbo.{name} VALUES (2)")
    simulator.capture()
    code, events = many.run()
    tally.equal(f"after a table went: exit code ({events[-3:]})", code, 0)
    for name in ("a", "b", "c"):
        tally.equal(f"{name}: went on", sorted(row["id"] for row in rows(many.folder / f"silver/dbo_{name}")),
                    [1, 2])
    tally.equal("no stream of the newer instance", (many.folder / "bronze/dbo_a_2").exists(), False)


def one_fails(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    """Listed by name: the one that is gone fails, first of all, and stops no other."""
    more = ('[[stream]]\ncaptureInstance = "dbo_c"\ntarget = "own/c"\napp_id = "own"\n'
            'checkpoint = "own/checkpoint"\nbootstrap = true\n')
    many = Many(program, folder / "listed", simulator, ["dbo_Gone", "dbo_b", "dbo_?"], more)
    code, events = many.run()
    tally.equal("one is gone: exit code", code, RECONFIGURE)
    failures = [event for event in events if "MC3004" in json.dumps(event)]
    tally.equal("one is gone: its error is told", {event.get("stream") for event in failures},
                {"dbo_Gone-v1", "dbo_Gone-v1 (silver)"})
    for name in ("a", "b"):
        tally.equal(f"{name}: the others go on", sorted(row["id"] for row in rows(many.folder / f"bronze/dbo_{name}")),
                    [1, 2])
    tally.equal("a stream of its own goes first", (many.folder / "own/c").is_dir(), True)
    tally.equal("and is one", (many.folder / "bronze/dbo_c").exists(), False)
    for number, (settings, text) in enumerate((
            ({"target": "bronze/all"}, "{ci}"), ({"silver": "silver/all"}, "{ci}"),
            ({"captureInstance": "dbo_a"}, "captureInstances"), ({"checkpoint": None}, "checkpoint"))):
        wrong = Many(program, folder / f"wrong{number}", simulator, "dbo_*", **settings)
        code, events = wrong.run("check")
        tally.equal(f"{settings}: refused by name", (code, text in json.dumps(events)), (RECONFIGURE, True))
    nothing = Many(program, folder / "nothing", simulator, "none_*")
    code, events = nothing.run()
    tally.equal("nothing matches", (code, "MC3004" in json.dumps(events)), (RECONFIGURE, True))


MASKS = """CREATE TABLE dbo.masks (id int NOT NULL PRIMARY KEY, a int NULL, made AS a + 1, b nvarchar(max) NULL,
[c "d] varchar(20) NULL, e int NULL, f int NULL, g int NULL, h int NULL, i int NULL)"""


def what_updates_wrote(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    simulator.create("masks", MASKS)
    simulator.run("INSERT dbo.masks (id, a, b, [c \"d]) VALUES (1, 1, N'large', 'c'), (2, 2, NULL, NULL)")
    simulator.enable("masks")
    kinds = {"listed": {"changedColumns": True, "unchangedLob": "listed"},
             "previous": {"unchangedLob": "previous"},
             "split": {"unchangedLob": "previous", "arrowBatchSize": 1},
             "plain": {}}
    pipelines = {name: Pipeline(program, folder / name, simulator, "masks", "dbo_masks", name,
                                silver=str(folder / name / "silver"), control_table=str(folder / name / "control"),
                                **options) for name, options in kinds.items()}
    for pipeline in pipelines.values():
        tally.equal("bootstrap", pipeline.run()[0], 0)
    for sql in ("UPDATE dbo.masks SET a = 7 WHERE id = 1",
                "UPDATE dbo.masks SET b = N'larger', i = 9 WHERE id = 1",
                "UPDATE dbo.masks SET a = 3, [c \"d] = 'x' WHERE id = 2",
                "DELETE dbo.masks WHERE id = 1"):
        simulator.run(sql)
    simulator.capture()
    read = {}
    for name, pipeline in pipelines.items():
        code, output = pipeline.run()
        tally.equal(f"{name}: stream ({output[-300:]})", code, 0)
        found = rows(pipeline.bronze)
        read[name] = sorted((row for row in found if row["_operation"] != 0), key=lambda row: (
            row["_start_lsn"], row["_seqval"], row["_operation"]))
        tally.equal(f"{name}: the made columns", {column for column in found[0]} & {"_changed_columns", "_unknown_columns"},
                    {"_changed_columns", "_unknown_columns"} if name == "listed" else set())
        silver = rows(pipeline.folder / "silver")
        tally.equal(f"{name}: silver", [(row["id"], row["a"], row["b"], row['c "d']) for row in silver],
                    [(2, 3, None, "x")])
        tally.equal(f"{name}: none in silver", {column for column in silver[0]} & {"_changed_columns", "_unknown_columns"},
                    set())
    tally.equal("operations", [row["_operation"] for row in read["plain"]], [3, 4, 3, 4, 3, 4, 1])
    tally.equal("as the server has it", [row["b"] for row in read["plain"]],
                [None, "large", "large", "larger", None, None, "larger"])
    for name in ("previous", "split"):
        tally.equal(f"{name}: filled", [row["b"] for row in read[name]],
                    ["large", "large", "large", "larger", None, None, "larger"])
    tally.equal("listed: as the server has it", [row["b"] for row in read["listed"]],
                [row["b"] for row in read["plain"]])
    wrote = ['["a"]', '["a"]', '["b", "i"]', '["b", "i"]', '["a", "c \\"d"]', '["a", "c \\"d"]', None]
    tally.equal("written", [row["_changed_columns"] for row in read["listed"]], wrote)
    tally.equal("unknown", [row["_unknown_columns"] for row in read["listed"]],
                ['["b"]', None, None, None, '["b"]', None, None])


def named_as_in_bronze(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    """`columns` spells the names in another case and order."""
    simulator.create("spelled", "CREATE TABLE dbo.spelled (id int NOT NULL PRIMARY KEY, big nvarchar(max) NULL, n int)")
    simulator.run("INSERT dbo.spelled VALUES (1, N'large', 1)")
    simulator.enable("spelled")
    pipeline = Pipeline(program, folder / "spelled", simulator, "spelled", "dbo_spelled", "spelled",
                        columns="BIG STRING, N INT, ID INT", changedColumns=True, unchangedLob="listed")
    tally.equal("spelled: bootstrap", pipeline.run()[0], 0)
    simulator.run("UPDATE dbo.spelled SET n = 2")
    simulator.capture()
    tally.equal("spelled: stream", pipeline.run()[0], 0)
    tally.equal("spelled: the names of bronze", sorted(
        (row["_operation"], row["N"], row["_changed_columns"], row["_unknown_columns"])
        for row in rows(pipeline.bronze)),
        [(0, 1, None, None), (3, 1, '["N"]', '["BIG"]'), (4, 2, '["N"]', None)])


def named_relatively(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    """Locations are relative to the file's folder, those of [catalog] too."""
    many = Many(program, folder / "sub", simulator, ["dbo_b"], '[catalog]\n"bronze.{ci}" = "lake/{ci}"\n',
                target="bronze.{ci}")
    many.file, many.start = pathlib.Path("sub/pipeline.toml"), folder
    tally.equal("a relative path: exit code", many.run()[0], 0)
    tally.equal("a relative path: bronze", (folder / "sub/lake/dbo_b/_delta_log").is_dir(), True)
    tally.equal("a relative path: silver", (folder / "sub/silver/dbo_b/_delta_log").is_dir(), True)
    tally.equal("a relative path: nothing elsewhere", (folder / "sub/sub").exists(), False)


def told_beforehand(tally: Tally, program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> None:
    """`check` ends as `run` would; so does a command that there is not, with the nearest one."""
    simulator.create("heap", "CREATE TABLE dbo.heap (id int NULL)")
    simulator.enable("heap")
    heap = Pipeline(program, folder / "heap", simulator, "heap", "dbo_heap", "heap",
                    silver=str(folder / "heap/silver"), control_table=str(folder / "heap/control"))
    for command in ("check", "run"):
        code, output = heap.run(command)
        tally.equal(f"{command}: silver without a key ({output[-300:]})",
                    (code, "MC5101" in output, "heap (silver)" in output), (RECONFIGURE, True, True))
    code, output = heap.run("check", ("--log", "json"))
    tally.equal("check: the stream itself is fine", '"event":"check"' in output.replace(" ", ""), True)
    for wrong, said in (("chek", "did you mean check?"), ("optimise", "did you mean optimize?"),
                        ("nothing", "mssql-cdc --help")):
        code, output = heap.run(wrong)
        tally.equal(f"{wrong}: {output}", (code, said in output), (USAGE, True))
    code, output = heap.run("backfill", ("--stream", "heap"))
    tally.equal(f"backfill before run names it ({output})", "mssql-cdc run" in output, True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-options-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        try:
            many_tables(tally, args.program, folder, simulator)
            one_fails(tally, args.program, folder, simulator)
            what_updates_wrote(tally, args.program, folder, simulator)
            named_as_in_bronze(tally, args.program, folder, simulator)
            named_relatively(tally, args.program, folder, simulator)
            told_beforehand(tally, args.program, folder, simulator)
        finally:
            simulator.stop()
    return tally.close()


if __name__ == "__main__":
    sys.exit(main())
