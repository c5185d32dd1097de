"""A worker that is told what to do line by line, and the process of one.

Each line of its standard input is a JSON object {"do": NAME, ...}; each answer is one line of JSON,
{"ok": RESULT} or {"error": TEXT}. The work of a line is the worker's method of that name.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import traceback


def serve(make) -> None:
    """Answers until standard input ends; `make` gives the worker. What others print is kept apart."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = make()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told = {"ok": getattr(worker, asked.pop("do"))(**asked)}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {error}\n{traceback.format_exc()}"}
        print(json.dumps(told, default=str), file=answers, flush=True)


class PackageFailed(Exception):
    """What the worker answered instead of a result."""


class WorkerEnded(Exception):
    """The worker's process is gone; the text is the end of its log."""


class Package:
    """The worker process; `do` sends one line and gives its answer."""

    def __init__(self, python: pathlib.Path, jars: str, log: pathlib.Path, script: pathlib.Path,
                 **environment: str) -> None:
        self.process = subprocess.Popen(
            [python, script, jars], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log.open("w"), text=True, env={**os.environ, **environment})
        self.log = log
        self.calls = 0

    def do(self, name: str, **arguments):
        self.calls += 1
        try:
            self.process.stdin.write(
                json.dumps({"do": name, **arguments}, default=os.fspath) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerEnded(f"the worker ended:\n{self.log.read_text()[-3000:]}")
        told = json.loads(line)
        if "error" in told:
            raise PackageFailed(f"{name}: {told['error']}")
        return told["ok"]

    def cpu_seconds(self) -> float:
        """What the worker, its JVM and their Python processes took so far."""
        children: dict[int, list[int]] = {}
        ticks: dict[int, int] = {}
        for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                _, _, fields = file.read_text().rpartition(") ")
            except OSError:  # It ended meanwhile.
                continue
            _, parent, *rest = fields.split()
            children.setdefault(int(parent), []).append(int(file.parent.name))
            ticks[int(file.parent.name)] = sum(map(int, rest[9:13]))
        found, total = [self.process.pid], 0
        while found:
            process = found.pop()
            found += children.get(process, [])
            total += ticks.get(process, 0)
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
