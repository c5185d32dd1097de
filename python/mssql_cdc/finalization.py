"""Up to when a table is final: not there yet on Spark."""

from __future__ import annotations

from typing import Any

from mssql_cdc._errors import not_there_yet

_NAMES = ("FinalizationListener", "advance", "candidate", "end_offset_from_progress",
          "ensure_control_table", "finalized_until", "freshness", "is_final", "track", "truncate")


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        raise not_there_yet(f"mssql_cdc.finalization.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
