"""Runs child processes for ./dev: output into a log, the log's end shown on failure."""

import dataclasses
import pathlib
import subprocess
import sys
import time

import dev_paths

LOGS = dev_paths.BUILD / "logs"
TAIL_LINE_COUNT = 60


@dataclasses.dataclass
class Outcome:
    """What a step counted: individual tests, or the step itself as one."""

    passed: int = 0
    failed: int = 0

    def add(self, other: "Outcome") -> None:
        self.passed += other.passed
        self.failed += other.failed


class StepFailed(Exception):
    """A step that could not do its work; the text says why and where the log is."""


def run(name: str, command: list, *, check: bool = True, **extra) -> int:
    """Runs `command` from the root with its output in build/logs/NAME.log (appended).

    Returns the exit code; with `check`, raises StepFailed instead of a code that is not 0.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    words = [str(word) for word in command]
    with log.open("ab") as into:
        into.write(f"$ {' '.join(words)}\n".encode())
        into.flush()
        try:
            code = subprocess.run(
                words,
                cwd=extra.pop("cwd", dev_paths.ROOT),
                env=extra.pop("env", None) or dev_paths.environment(),
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=subprocess.STDOUT,
                **extra,
            ).returncode
        except FileNotFoundError:
            raise StepFailed(f"{words[0]} is not there") from None
        except subprocess.TimeoutExpired as late:
            show_end(log)
            raise StepFailed(f"{words[0]} ran longer than {late.timeout} s") from None
    if check and code != 0:
        show_end(log)
        raise StepFailed(f"{words[0]} ended with {code}; {log} has everything")
    return code


def show_end(log: pathlib.Path) -> None:
    """Prints the end of a log, so that a failure is seen where only the output is kept."""
    lines = log.read_text(errors="replace").splitlines()
    print(f"--- end of {log} ---", *lines[-TAIL_LINE_COUNT:], "---", sep="\n", flush=True)


def show(command: list) -> int:
    """Runs `command` with this terminal's input and output; returns its exit code."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=dev_paths.ROOT, env=dev_paths.environment()).returncode


def timed(name: str, step) -> tuple[Outcome, float]:
    """Calls `step`, prints what it came to, and never lets its failure end the run."""
    print(f"{name} ...", flush=True)
    (LOGS / f"{name}.log").unlink(missing_ok=True)
    began = time.monotonic()
    try:
        outcome = step(name)
    except StepFailed as failure:
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
        outcome = Outcome(failed=1)
    took = time.monotonic() - began
    print(f"{name}: {outcome.passed} passed, {outcome.failed} failed, {took:.1f} s", flush=True)
    return outcome, took
