"""A pipeline file over a lake folder of its own, and the product's processes that run it."""

from __future__ import annotations

import json
import dataclasses
import os
import pathlib
import subprocess
import time

from simulator import Simulator

RETRY, RECONFIGURE, RESEED, REPORT, USAGE = 75, 78, 65, 70, 64


@dataclasses.dataclass(frozen=True)
class Cost:
    """What the kernel says of a process at its end."""

    wall_seconds: float
    cpu_seconds: float
    peak_mb: float  # Resident.


class Pipeline:
    """One stream of `capture_instance`: bronze, facts and checkpoint below `folder`, unless
    `options` say otherwise."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, source: Simulator, database: str,
                 capture_instance: str, app_id: str, trigger: str | None = "availableNow",
                 bootstrap: bool = True, connection: str | None = None, server: str | None = None,
                 user: str | None = None, password: str | None = None, **options) -> None:
        self.program = program
        self.folder = folder
        connection = source.encryption if connection is None else connection
        self.password = password or source.password
        folder.mkdir(parents=True, exist_ok=True)
        self.bronze, self.facts, self.checkpoint = (folder / name for name in ("bronze", "facts", "checkpoint"))
        stream = {"captureInstance": capture_instance, "target": str(self.bronze), "app_id": app_id,
                  "checkpoint": str(self.checkpoint), "facts_table": str(self.facts), "bootstrap": bootstrap}
        if trigger:
            stream["trigger"] = trigger
        stream |= options  # One set to None is left out.
        text = f"Server={server or f'{source.host},{source.port}'};Database={database};{connection}"
        self.file = folder / "pipeline.toml"
        self.file.write_text(
            f"""[source]
connectionString = {json.dumps(text, ensure_ascii=False)}
user = "{user or source.user}"
password = {{ env = "PIPELINE_PASSWORD" }}
[[stream]]
"""
            + "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
                      for key, value in stream.items() if value is not None)
        )

    def start(self, command: str = "run", arguments: tuple[str, ...] = (),
              **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.program, command, self.file, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=dict(os.environ, PIPELINE_PASSWORD=self.password, **environment),
        )

    def measured(self) -> Cost:
        """Runs it in a process of its own; ends the program if that fails."""
        begun = time.monotonic()
        process = self.start()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"the run ended with {process.returncode}:\n{output}")
        return Cost(time.monotonic() - begun, usage.ru_utime + usage.ru_stime,
                    usage.ru_maxrss / 1000)

    def run(self, command: str = "run", arguments: tuple[str, ...] = (),
            **environment: str) -> tuple[int, str]:
        """Exit code and output."""
        process = self.start(command, arguments, **environment)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output
