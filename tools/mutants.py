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
        return 1, "timed out"
    return done.returncode, done.stdout


def attempt(program: pathlib.Path, name: str, line: int) -> tuple[str, int, set[str], bool]:
    code, output = run(program, f"Checklist{line:02}*", name)
    return name, line, failed_tests(output), code != 0


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
    green = []
    noticed: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(attempt, options.program, *row) for row in rows]
        for job in jobs:
            name, line, failed, red = job.result()
            noticed |= failed
            print(f"{'red  ' if red else 'GREEN'} {line:2} {name}: "
                  f"{', '.join(sorted(failed)) or '-'}", flush=True)
            if not red:
                green.append(name)
    if not options.only:
        for test in sorted(ran - noticed):
            print(f"no switch concerns {test}")
    print(f"{len(rows) - len(green)} passed, {len(green)} failed")
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
