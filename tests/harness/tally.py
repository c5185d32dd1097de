"""Counts what a test program compared, shows what differs, and closes as `./dev` reads it."""

from __future__ import annotations


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def equal(self, what: str, got, want) -> None:
        self.true(what, got == want, f"got {got!r:.900}, expected {want!r:.900}")

    def true(self, what: str, condition: bool, shown: object = "") -> None:
        """`shown` tells what was found where `condition` does not hold."""
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAILED {what}: {shown!s:.2000}", flush=True)

    def close(self) -> int:
        """Prints the last line; returns the exit code. Nothing compared is a failure."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0
