"""What `./dev test` runs, in order. A step is listed here once its program exists.

A step that cannot do its work counts as one failed test; the steps after it still run.
"""

import dataclasses
import re
import sys
from collections.abc import Callable

import dev_build
import dev_format
import dev_paths
import dev_run
import dev_setup_spark
import dev_setup_wheel
from dev_run import Outcome

ROOT = dev_paths.ROOT


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    what: str
    work: Callable[[str], Outcome]


def tidy(name: str) -> Outcome:
    dev_run.run(name, [sys.executable, ROOT / "tools/tidy.py"])
    return Outcome(passed=1)


def formatted(name: str) -> Outcome:
    dev_format.check(name)
    return Outcome(passed=1)


def tools_tests(name: str) -> Outcome:
    """The tests of the tools themselves."""
    dev_run.run(name, [sys.executable, "-m", "unittest", "discover", "-s", "tools",
                       "-p", "*_test.py"])
    return closing_count(name)


def release_build(name: str) -> Outcome:
    dev_build.build(name, "release")
    return Outcome(passed=1)


def dev_preset_build(name: str) -> Outcome:
    dev_build.build(name, "dev")
    return Outcome(passed=1)


def ctest(preset: str, *arguments: str) -> Callable[[str], Outcome]:
    return lambda name: dev_build.test(name, preset, list(arguments))


def counted(*command) -> Callable[[str], Outcome]:
    """A Python script of ours whose last lines hold 'N passed, N failed'."""
    return counted_program(dev_paths.venv_python(), *command)


def counted_program(*command) -> Callable[[str], Outcome]:
    """The same of any program."""

    def work(name: str) -> Outcome:
        code = dev_run.run(name, list(command), check=False, timeout=PROGRAM_SECONDS_MAX)
        outcome = closing_count(name)
        if code != 0 and outcome.failed == 0:
            outcome.failed = 1
        if outcome.failed:
            dev_run.show_end(dev_run.LOGS / f"{name}.log")
        return outcome

    return work


def wheel(name: str) -> Outcome:
    """Builds the Python package, installs it where there is nothing else, reads by other clients."""
    dev_setup_wheel.build(name)
    site = dev_setup_wheel.site()
    outcome = counted(ROOT / "tests/python/check_wheel.py", dev_setup_wheel.WHEEL / "dist")(name)
    outcome.add(counted(ROOT / "tests/python/check_clients.py", "--site", site, "--program",
                        site / "mssql_cdc" / "bin" / "mssql-cdc")(name))
    return outcome


PROGRAM = dev_paths.program("mssql-cdc")
PROGRAM_SECONDS_MAX = 1200
EXISTING = (ROOT / "tests/existing/existing_package.py", "--program", PROGRAM,
            "--write-tables", dev_paths.program("tests/write_tables"),
            "--python", dev_setup_spark.spark_python(), "--jars", dev_setup_spark.jars())
SPARK = ("--program", PROGRAM, "--python", dev_setup_wheel.python(),
         "--site", dev_setup_wheel.site(), "--jars", dev_setup_spark.jars(),
         "--peer", dev_setup_spark.spark_python())


def closing_count(name: str) -> Outcome:
    """Reads what a runner says it ran from the end of its log; nothing said is a failure."""
    text = (dev_run.LOGS / f"{name}.log").read_text(errors="replace")
    said = re.findall(r"^(\d+) passed, (\d+) failed", text, re.M)
    if said:
        return Outcome(int(said[-1][0]), int(said[-1][1]))
    unittest = re.findall(r"^Ran (\d+) tests?", text, re.M)
    if unittest and int(unittest[-1]) > 0:
        return Outcome(passed=int(unittest[-1]))
    return Outcome(failed=1)


STEPS = [
    Step("tidy", "the rules no compiler checks", tidy),
    Step("format", "clang-format changes nothing", formatted),
    Step("tools", "the tools' own tests", tools_tests),
    Step("build release", "everything, optimised", release_build),
    Step("unit", "unit tests, optimised", ctest("release", "-L", "^unit$")),
    Step("e2e", "the product against the simulator, in one process",
         ctest("release", "-L", "^sim$")),
    Step("model", "random histories and readers' lives, 50 seeds; ./dev crash --full does "
         "1000", counted_program(dev_paths.program("tests/model_test"), "--seeds", "50")),
    Step("demo", "the README's first command, compared by other people's programs",
         counted(ROOT / "tools/demo.py", "--program", PROGRAM)),
    Step("silver", "50 random lives of bronze applied to silver; ./dev crash --full runs 1000",
         counted_program(dev_paths.program("tests/silver_model"), "--seeds", "50")),
    Step("build dev", "everything, with ASan and UBSan", dev_preset_build),
    Step("unit sanitized", "unit tests and fuzz corpus under ASan and UBSan",
         ctest("dev", "-L", "^unit$")),
    Step("fuzz", "libFuzzer on what a server may send, each target 60 s",
         counted(ROOT / "tools/fuzz.py", "reply", "tokens", "prelogin", "--seconds", "60")),
    Step("mutants", "each CDC behaviour of the simulator is missed by a test",
         counted(ROOT / "tools/mutants.py", "--program", dev_paths.program("sim_test"))),
    Step("peers", "other people's drivers read the simulator",
         counted(ROOT / "tests/peers/peers.py", "--program", PROGRAM)),
    Step("debezium", "Debezium and the product read one history",
         counted(ROOT / "tests/peers/debezium/check_debezium.py", "--program", PROGRAM)),
    Step("values", "every type through the product into Delta",
         counted(ROOT / "tests/values/check_values.py", "--program", PROGRAM)),
    Step("casts", "option columns converts as Arrow's safe casts do",
         counted(ROOT / "tests/values/check_casts.py",
                 dev_paths.program("tests/cast_values"))),
    Step("names", "names that programs trip over",
         counted(ROOT / "tests/names/check_names.py", "--program", PROGRAM)),
    Step("tokens", "logins by access token, against a stand-in of Entra ID",
         counted(ROOT / "tests/tokens/check_tokens.py", "--program", PROGRAM,
                 "--server", dev_paths.program("tests/fixed_server"))),
    Step("fake", "backend fake and the native one read one history into equal bronze",
         counted(ROOT / "tests/fake/check_fake.py", "--program", PROGRAM,
                 "--python", dev_setup_spark.spark_python())),
    Step("tables", "bronze and facts as other programs rely on them",
         counted(ROOT / "tests/tables/check_tables.py", "--program", PROGRAM)),
    Step("delta", "the lake's tables in other people's readers",
         counted(ROOT / "tests/delta/check_lake.py",
                 dev_paths.program("tests/write_tables"))),
    Step("silver end to end", "a simulated table to silver, read by others, reconciled, repaired",
         counted(ROOT / "tests/silver/check_silver.py", "--program", PROGRAM)),
    Step("options", "many tables by one [[stream]], what an update wrote",
         counted(ROOT / "tests/options/check_options.py", "--program", PROGRAM)),
    Step("existing", "the existing package on Spark reads the simulator; its bronze is ours",
         counted(*EXISTING, "--quick")),
    Step("python", "what of the Python package needs no extension",
         counted("-m", "unittest", "discover", "-s", ROOT / "tests/python", "-p", "*_test.py")),
    Step("wheel", "the Python package, built, installed alone, and other clients through it", wheel),
    Step("spark", "the Python package on Spark, the shorter parts; ./dev spark runs all",
         counted(ROOT / "tests/spark/check_spark.py", *SPARK, "--quick")),
    Step("takeover", "tables and checkpoints of the existing package, continued",
         counted(ROOT / "tests/takeover/takeover.py", "--program", PROGRAM)),
    Step("faults", "what a user gets wrong, and secrets in outputs",
         counted(ROOT / "tests/faults/faults.py", "--program", PROGRAM)),
    Step("hostile", "servers that lie",
         counted(ROOT / "tests/hostile/hostile.py", "--program", PROGRAM)),
    Step("crash", "stopped at every 5th operation and by 20 kills; ./dev crash does all",
         counted(ROOT / "tests/crash/crash.py", "--program", PROGRAM, "--stride", "5",
                 "--kills", "20")),
]
