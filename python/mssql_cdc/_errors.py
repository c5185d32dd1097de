"""Which Python exception an error of the core is.

The core's errors carry a code (docs/errors.md) and facts; the class says what the caller can do.
`code`, `name` and `facts` are attributes of every exception that comes from the core.
"""

from __future__ import annotations

import builtins

from mssql_cdc.client import DataLossError, SchemaChangedError

_DATA_LOSS = {"DataLoss", "PositionAheadOfServer", "SourceForked"}
_SCHEMA_CHANGED = {"SchemaChanged", "LakeSchemaMismatch"}


def class_of(name: str, code: str) -> type[Exception]:
    """The class for an error's name and code ("MC2001")."""
    number = int(code.removeprefix("MC"))
    if name in _DATA_LOSS:
        return DataLossError
    if name in _SCHEMA_CHANGED:
        return SchemaChangedError
    if number < 1100 or 2000 <= number < 3000:
        return builtins.ConnectionError
    if name == "OutOfMemory":
        return MemoryError
    if number // 1000 == 6 or name in ("CheckpointRewound", "SnapshotModeLocked", "CdcNotEnabled",
                                       "CaptureInstanceNotFound", "CaptureHasNotRun",
                                       "ColumnNotReadable"):
        return ValueError
    return RuntimeError


def make(name: str, code: str, text: str, facts: dict[str, str]) -> Exception:
    """The exception for an error of the core; called by the extension."""
    exception = class_of(name, code)(text)
    exception.code = code
    exception.name = name
    exception.facts = dict(facts)
    return exception


def as_value_error(error: Exception) -> ValueError:
    """The same error where the caller's argument is what is wrong."""
    made = ValueError(str(error))
    for name in ("code", "name", "facts"):
        if hasattr(error, name):
            setattr(made, name, getattr(error, name))
    return made


def not_there_yet(what: str) -> NotImplementedError:
    """What this release does not do on Spark, by the name its caller used."""
    return NotImplementedError(f"{what} is not there yet in this release of mssql_cdc on Spark")
