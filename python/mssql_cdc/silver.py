"""Current-state tables and their proof: not there yet on Spark."""

from __future__ import annotations

from typing import Any

from mssql_cdc._errors import not_there_yet


def apply_changes(*_: Any, **__: Any) -> Any:
    """Not there yet."""
    raise not_there_yet("apply_changes()")


def reconcile(*_: Any, **__: Any) -> Any:
    """Not there yet."""
    raise not_there_yet("reconcile()")


__all__ = ["apply_changes", "reconcile"]
