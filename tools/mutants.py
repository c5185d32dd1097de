"""Turns the simulator's CDC behaviours off one by one and expects a test to notice.

Each row of `sim/engine/behaviour.h` names a behaviour and the line of the CDC checklist
it belongs to. Without the behaviour, at least one test of that line's suite must fail;
with all of them, none may.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "sim/engine/behaviour.h"
SWITCH = "MSSQL_CDC_TEST_WITHOUT"
RUN_SECONDS_MAX = 120
TESTS_FAILED = 1  # GoogleTest's exit code.
TIMED_OUT = 124


def behaviours(text: str) -> list[tuple[str, int]]:
    """(name, line) of each row of the table."""
    rows = re.findall(r'\{Behaviour::k\w+,\s*"(\w+)",\s*(\d+)\}', text)
    return [(name, int(line)) for name, line in rows]


def failed_tests(output: str) -> set[str]:
    return set(re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.M))


def run(program: pathlib.Path, pattern: str, without: str = "") -> tuple[int, str]:
    environment = {**os.environ, SWITCH: without}
    try:
        done = subprocess.run(
            [program, f"--gtest_filter={pattern}", "--gtest_color=no"],
            env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return TIMED_OUT, ""
    return done.returncode, done.stdout


def verdict(code: int, failed: set[str]) -> str:
    """"red": a test noticed; "GREEN": none did; "BROKEN": it crashed or hung, which says nothing."""
    if code == 0:
        return "GREEN"
    return "red" if code == TESTS_FAILED and failed else "BROKEN"


def attempt(program: pathlib.Path, name: str, line: int) -> tuple[str, int, set[str], str]:
    code, output = run(program, f"Checklist{line:02}*", name)
    failed = failed_tests(output)
    return name, line, failed, verdict(code, failed)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="behaviours whose name holds this")
    options = parser.parse_args(words)
    rows = [row for row in behaviours(TABLE.read_text()) if options.only in row[0]]
    if not rows:
        print("0 passed, 1 failed")
        return 1
    code, output = run(options.program, "Checklist*")
    ran = set(re.findall(r"^\[       OK \] ([\w/]+\.[\w/]+)", output, re.M))
    if code != 0 or not ran:
        print("with all behaviours, these fail:", *sorted(failed_tests(output)))
        print("0 passed, 1 failed")
        return 1
    missed = []
    noticed: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(attempt, options.program, *row) for row in rows]
        for job in jobs:
            name, line, failed, judged = job.result()
            noticed |= failed
            print(f"{judged:6} {line:2} {name}: {', '.join(sorted(failed)) or '-'}", flush=True)
            if judged != "red":
                missed.append(name)
    if not options.only:
        for test in sorted(ran - noticed):
            print(f"no switch concerns {test}")
    print(f"{len(rows) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
