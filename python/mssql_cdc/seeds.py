"""A copy of the source table as the rows of a snapshot, shaped by Spark."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def as_of_text(as_of: datetime.datetime | str) -> str:
    """An LSN as it is; a time as ISO 8601 in UTC, which one without a zone is."""
    if isinstance(as_of, str):
        return as_of
    if not isinstance(as_of, datetime.datetime):
        raise TypeError(f"as_of is a datetime or an LSN, not a {type(as_of).__name__}")
    if as_of.tzinfo is not None:
        as_of = as_of.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return as_of.isoformat(timespec="milliseconds")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Copy:
    """A DataFrame whose columns are those of the table, by name in any case."""

    def __init__(self, df: DataFrame, columns: list[tuple[str, str]], capture_instance: str) -> None:
        self.df, self.capture_instance = df, capture_instance
        there = {field.name.lower(): field for field in df.schema}
        self.columns = [(name, type_, there.get(name.lower())) for name, type_ in columns]
        # The captured ones only: others are dropped, whatever their types.
        self.ddl = ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}"
                             for _, _, field in self.columns if field is not None)

    def rows(self, stamp: dict[str, str], command_id: bool) -> DataFrame:
        """As bronze has a snapshot's rows."""
        from pyspark.sql import functions as f

        def null(type_: str) -> Column:
            return f.lit(None).cast(type_)

        made = [f.lit(self.capture_instance).alias("_capture_instance"),
                f.lit(stamp["lsn"]).alias("_start_lsn"), null("string").alias("_seqval"),
                f.lit(0).cast("int").alias("_operation")]
        if command_id:
            made.append(null("int").alias("_command_id"))
        commit_ts: Any = f.lit(stamp["commit_ts"]) if stamp["commit_ts"] else f.lit(None)
        made.append(commit_ts.cast("timestamp_ntz").alias("_commit_ts"))
        for name, type_, field in self.columns:
            made.append((null(type_) if field is None else _cast(field, type_)).alias(name))
        made += [null("int").alias("_batch_id"), f.lit(stamp["lsn"]).alias("_snapshot"),
                 null("int").alias("_chunk")]
        return self.df.select(*made)


def _cast(field: Any, type_: str) -> Column:
    """A column in another type; a value that would not come back as it was is an error."""
    from pyspark.sql import functions as f

    column = f.col(_quoted(field.name))
    if field.dataType.simpleString() == type_.lower():
        return column
    there = column.cast(type_)
    problem = f.concat(f.lit(f"seed: a value of {field.name} does not fit {type_}: "),
                       column.cast("string"))
    return f.when(column.isNull() | column.eqNullSafe(there.cast(field.dataType)), there).otherwise(
        f.raise_error(problem).cast(type_))
