"""The commands of ./dev. Each takes the words after its name and returns an exit code."""

import dataclasses
import sys
import time
from collections.abc import Callable

import dev_build
import dev_format
import dev_paths
import dev_run
import dev_setup
import dev_setup_wheel
import dev_steps
from dev_run import Outcome, StepFailed

ROOT = dev_paths.ROOT


@dataclasses.dataclass(frozen=True)
class Command:
    usage: str
    what: str
    work: Callable[[list[str]], int]


def ready(peers: bool = True) -> bool:
    """Sets the machine up; tells what could not be had. Quick when there is nothing to do."""
    complaints = dev_setup.setup(peers)
    for complaint in complaints:
        print(f"could not be had: {complaint}", file=sys.stderr)
    return not complaints


def attempt(work: Callable[[], int | None], peers: bool = True) -> int:
    """Runs `work` on a machine that is set up; a failed step is an exit code, not a trace."""
    if not ready(peers):
        return 1
    try:
        return work() or 0
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1


def setup(words: list[str]) -> int:
    return 0 if ready() else 1


def summary(rows: list[tuple[str, Outcome, float]]) -> str:
    wide = max(len(name) for name, _, _ in rows)
    lines = [f"{'step':{wide}}  passed  failed  seconds"]
    lines += [
        f"{name:{wide}}  {outcome.passed:6}  {outcome.failed:6}  {took:7.1f}"
        for name, outcome, took in rows
    ]
    return "\n".join(lines)


def test(words: list[str]) -> int:
    """All steps, or the unit tests whose ctest name matches the given word."""
    if words:
        return one_test(words)
    began = time.monotonic()
    rows: list[tuple[str, Outcome, float]] = []
    total = Outcome()
    complaints = dev_setup.setup()
    if complaints:
        print(*(f"could not be had: {item}" for item in complaints), sep="\n", flush=True)
    rows.append(("setup", Outcome(not complaints, len(complaints)),
                 time.monotonic() - began))
    for step in dev_steps.STEPS:
        rows.append((step.name, *dev_run.timed(step.name, step.work)))
    for _, outcome, _ in rows:
        total.add(outcome)
    print()
    print(summary(rows))
    print(f"in all {time.monotonic() - began:.0f} s")
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 0 if total.failed == 0 else 1


def one_test(words: list[str]) -> int:
    preset = "release" if "--release" in words else "dev"
    names = [word for word in words if not word.startswith("--")]

    def work() -> int:
        dev_build.build("build", preset)
        outcome = Outcome()
        for name in names:
            outcome.add(dev_build.test("test", preset, ["-R", name]))
        print(f"{outcome.passed} passed, {outcome.failed} failed")
        return 1 if outcome.failed else 0

    return attempt(work)


def check(words: list[str]) -> int:
    """What to run before every commit: tidy, format, sanitized build, unit tests."""

    def work() -> int:
        total = Outcome()
        chosen = ["tidy", "format", "tools", "build dev", "unit sanitized"]
        for step in dev_steps.STEPS:
            if step.name in chosen:
                total.add(dev_run.timed(step.name, step.work)[0])
        print(f"{total.passed} passed, {total.failed} failed")
        return 1 if total.failed else 0

    return attempt(work)


def reformat(words: list[str]) -> int:
    if "--check" in words:
        return attempt(lambda: dev_format.check("format"))
    return attempt(lambda: dev_format.rewrite("format"))


def tidy(words: list[str]) -> int:
    return dev_run.show([sys.executable, ROOT / "tools/tidy.py", *words])


def script(path: str, *fixed) -> Callable[[list[str]], int]:
    """A command that builds the release preset and hands over to a Python script."""

    def command(words: list[str]) -> int:
        def work() -> int:
            dev_build.build("build", "release")
            return dev_run.show([dev_paths.venv_python(), ROOT / path, *fixed, *words])

        return attempt(work)

    return command


def demo(words: list[str]) -> int:
    """The product alone is built: who sees it first should not wait for its tests."""

    def work() -> int:
        print("building mssql-cdc (minutes the first time, seconds later)", flush=True)
        dev_build.build("build", "release", ["mssql-cdc"])
        return dev_run.show([dev_paths.venv_python(), ROOT / "tools/demo.py",
                             "--program", dev_steps.PROGRAM, *words])

    return attempt(work, peers=False)


def with_wheel(path: str, *fixed) -> Callable[[list[str]], int]:
    """As `script`, with the Python package built too."""
    command = script(path, *fixed)

    def both(words: list[str]) -> int:
        def work() -> int:
            dev_setup_wheel.build("wheel")
            return 0

        return attempt(work) or command(words)

    return both


def spark(words: list[str]) -> int:
    """All parts, with an older Spark for the one that needs it."""
    complaints = dev_setup_wheel.setup_older(dev_setup.stamped, dev_setup.stamp_of)
    for complaint in complaints:
        print(f"could not be had: {complaint}", file=sys.stderr)
    return 1 if complaints else with_wheel(
        "tests/spark/check_spark.py", *dev_steps.SPARK, "--older",
        dev_setup_wheel.older_python())(words)


def wheel(words: list[str]) -> int:
    """Builds the wheel, installs it alone, and reads by other clients through it."""

    def work() -> int:
        dev_setup_wheel.build("wheel")
        checks = [("tests/python/check_wheel.py", dev_setup_wheel.WHEEL / "dist"),
                  ("tests/python/check_clients.py", "--site", dev_setup_wheel.site(), "--program",
                   dev_setup_wheel.site() / "mssql_cdc" / "bin" / "mssql-cdc")]
        codes = [dev_run.show([dev_paths.venv_python(), ROOT / path, *more])
                 for path, *more in checks]
        return max(codes)

    return attempt(work)


def crash(words: list[str]) -> int:
    """All stops of the runtime; with --full 1000 seeds of the model test after them."""

    def work() -> int:
        dev_build.build("build", "release")
        rest = [word for word in words if word != "--full"]
        code = dev_run.show([dev_paths.venv_python(), ROOT / "tests/crash/crash.py",
                             "--program", dev_steps.PROGRAM, *rest])
        if "--full" not in words:
            return code
        for model in ("tests/model_test", "tests/silver_model"):
            code = dev_run.show([dev_paths.program(model), "--seeds", "1000"]) or code
        return code

    return attempt(work)


def bench_program(name: str):
    """A bench that is a program of its own."""

    def run(words: list[str]) -> int:
        def work() -> int:
            dev_build.build("build", "release")
            return dev_run.show([dev_paths.program(f"bench/{name}"), *words])

        return attempt(work)

    return run


def peers(words: list[str]) -> int:
    """The drivers, or Debezium's connector."""
    debezium = "--debezium" in words
    path = "tests/peers/debezium/check_debezium.py" if debezium else "tests/peers/peers.py"
    return script(path, "--program", dev_steps.PROGRAM)(
        [word for word in words if word != "--debezium"])


BENCHES = {
    "latency": bench_program("latency_bench"),
    "idle": script("bench/idle.py", "--program", dev_steps.PROGRAM),
    "planning": bench_program("planning_bench"),
    "many": script("bench/many.py", "--program", dev_steps.PROGRAM),
    "read": script("bench/read.py"),
    "serve": script("bench/serve.py"),
    "memory": script("bench/memory.py", "--program", dev_steps.PROGRAM),
    "spark": with_wheel("bench/spark.py", *dev_steps.SPARK),
    "catch_up": script("bench/catch_up.py", "--program", dev_steps.PROGRAM),
    "silver": with_wheel("bench/silver.py", *dev_steps.SPARK),
}


def mutants(words: list[str]) -> int:
    def work() -> int:
        dev_build.build("build", "release", ["sim_test"])
        return dev_run.show([dev_paths.venv_python(), ROOT / "tools/mutants.py",
                             "--program", dev_paths.program("sim_test"), *words])

    return attempt(work)


def bench(words: list[str]) -> int:
    if not words or words[0] not in BENCHES:
        print(f"./dev bench {{{','.join(BENCHES)}}} [OPTIONS]; --help says which",
              file=sys.stderr)
        return 2
    return BENCHES[words[0]](words[1:])


def fuzz(words: list[str]) -> int:
    return attempt(lambda: dev_run.show(
        [dev_paths.venv_python(), ROOT / "tools/fuzz.py", *words]))


COMMANDS = {
    "setup": Command("setup", "install what the project needs", setup),
    "demo": Command("demo", "the product on a sample shop, checked by other programs", demo),
    "test": Command("test [NAME]", "everything CI runs, or the tests of one room", test),
    "check": Command("check", "before every commit: tidy, format, sanitizers, unit", check),
    "peers": Command("peers [--only NAME | --debezium]",
                     "other people's drivers, or Debezium, read the simulator", peers),
    "existing": Command("existing [--only PART ...]", "the existing package on Spark beside ours",
                        script(*dev_steps.EXISTING)),
    "wheel": Command("wheel", "build the Python package into build/wheel, and check it", wheel),
    "spark": Command("spark [--only PART ...]", "the Python package on Spark beside the binary",
                     spark),
    "spark-demo": Command("spark-demo", "the reference's first examples on the simulator",
                          with_wheel("tools/spark_demo.py", *dev_steps.SPARK)),
    "crash": Command("crash [--full] [OPTIONS]",
                     "stop the runtime everywhere, compare with a model", crash),
    "mutants": Command("mutants [--only NAME]",
                       "turn the simulator's behaviours off: a test must notice", mutants),
    "fuzz": Command("fuzz [TARGET ...] [--seconds N]", "libFuzzer under clang 16", fuzz),
    "bench": Command("bench NAME [OPTIONS]", "measure: ./dev bench alone lists what", bench),
    "format": Command("format [--check]", "clang-format every C++ file", reformat),
    "tidy": Command("tidy [--shrink]", "the rules no compiler checks", tidy),
}


def overview() -> str:
    wide = max(len(command.usage) for command in COMMANDS.values())
    lines = ["./dev COMMAND", ""]
    lines += [f"  {command.usage:{wide}}  {command.what}" for command in COMMANDS.values()]
    return "\n".join(lines)
