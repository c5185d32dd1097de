"""What a process and all below it cost: CPU time and peak memory, from the kernel's counters."""

from __future__ import annotations

import os
import pathlib
import threading


def descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for task in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all below it, those that ended below it included."""
    total = 0
    for one in descendants(pid):
        try:
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[i]) for i in (11, 12, 13, 14))
    return total / os.sysconf("SC_CLK_TCK")


class PeakMemory:
    """The largest sum of resident sets (shared pages counted once a process) while it is open."""

    def __init__(self, pid: int, every: float = 0.2) -> None:
        self.every = every  # Seconds between two looks.
        self.pid, self.peak_mb, self.over = pid, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        page_mb = os.sysconf("SC_PAGE_SIZE") / 1e6
        while not self.over.wait(self.every):
            total = 0
            for one in descendants(self.pid):
                try:
                    total += int(pathlib.Path(f"/proc/{one}/statm").read_text().split()[1])
                except OSError:
                    continue
            self.peak_mb = max(self.peak_mb, total * page_mb)

    def __enter__(self) -> PeakMemory:
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        self.thread.join()
