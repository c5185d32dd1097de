"""The errors a stream can end with, and how to tell them apart.

Spark wraps what a worker raised as text; `is_data_loss` and `is_schema_changed` look there too, by
the qualified names `mssql_cdc.client.DataLossError` and `mssql_cdc.client.SchemaChangedError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NewType, Protocol, runtime_checkable

Lsn = NewType("Lsn", str)


class DataLossError(RuntimeError):
    """Changes were removed from the source before they were read."""


class SchemaChangedError(RuntimeError):
    """The source's columns no longer fit what the query reads or the table holds."""


def is_data_loss(exc: BaseException) -> bool:
    """Whether `exc` is a DataLossError, or Spark's account of one."""
    return isinstance(exc, DataLossError) or "mssql_cdc.client.DataLossError:" in str(exc)


def is_schema_changed(exc: BaseException) -> bool:
    """Whether `exc` is a SchemaChangedError, or Spark's account of one."""
    return (isinstance(exc, SchemaChangedError)
            or "mssql_cdc.client.SchemaChangedError:" in str(exc))


@runtime_checkable
class Backend(Protocol):
    """What runs T-SQL and gives Arrow batches."""

    def batches(self, sql: str, params: Sequence[Any], batch_size: int) -> Iterator[Any]: ...

    def scalar(self, sql: str, params: Sequence[Any] = ()) -> Any: ...

    def close(self) -> None: ...


@runtime_checkable
class CdcClient(Protocol):
    """What a reader asks of a source: the part that users' tests stand in for."""

    def max_lsn(self) -> Lsn | None: ...

    def min_lsn(self, capture_instance: str) -> Lsn: ...

    def close(self) -> None: ...


def make_client(options: Mapping[str, str]) -> CdcClient:
    """Not there yet: the core reads the source itself."""
    from mssql_cdc._errors import not_there_yet

    raise not_there_yet("make_client()")


__all__ = ["Backend", "CdcClient", "DataLossError", "Lsn", "SchemaChangedError", "is_data_loss",
           "is_schema_changed", "make_client"]
