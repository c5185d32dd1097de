"""Where tables are: names of the session's catalog, and paths.

A reference with a / or a : is a path, anything else a name. The extension works on a location; a
name is created in the catalog first and then located.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mssql_cdc import _core

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A table's columns as (name, type, comment), its comment and its properties.
Definition = tuple[list[tuple[str, str, str]], str, dict[str, str]]

# Delta refuses such names unless columns are mapped.
_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")


def is_path(reference: str) -> bool:
    """Whether a table is given as a path."""
    return "/" in reference or ":" in reference


def table_ref(reference: str) -> str:
    """The reference as SQL has it."""
    return "delta.`" + reference.replace("`", "``") + "`" if is_path(reference) else reference


def exists(spark: SparkSession, reference: str) -> bool:
    """Whether there is a Delta table."""
    if not is_path(reference):
        return spark.catalog.tableExists(reference)
    try:
        spark.sql(f"DESCRIBE DETAIL {table_ref(reference)}").collect()
        return True
    except Exception:
        return False


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def create(spark: SparkSession, name: str, definition: Definition) -> None:
    """Creates a table of the catalog, unless it is there."""
    columns, comment, properties = definition
    if any(_NEEDS_MAPPING.search(column) for column, _, _ in columns):
        properties = {**properties, "delta.columnMapping.mode": "name"}
    listed = ", ".join(
        "`" + column.replace("`", "``") + f"` {type_}" + (f" COMMENT {_quoted(text)}" if text else "")
        for column, type_, text in columns)
    set_to = ", ".join(f"{_quoted(key)} = {_quoted(value)}" for key, value in properties.items())
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} ({listed}) USING delta "
              f"COMMENT {_quoted(comment)}" + (f" TBLPROPERTIES ({set_to})" if set_to else ""))


def location(spark: SparkSession, reference: str) -> str:
    """Where the table is, as the extension takes it; a name must exist."""
    if is_path(reference):
        return plain_path(reference)
    detail = spark.sql(f"DESCRIBE DETAIL {reference}").select("location").collect()
    return plain_path(detail[0][0])


def place_for(spark: SparkSession, reference: str) -> str:
    """Where a table is, or where one of that name will be."""
    if is_path(reference) or exists(spark, reference):
        return location(spark, reference)
    *schema, name = reference.split(".")
    rows = spark.sql(f"DESCRIBE SCHEMA {'.'.join(schema) or spark.catalog.currentDatabase()}")
    folder = rows.where("info_name = 'Location'").collect()[0]["info_value"]
    return plain_path(folder).rstrip("/") + "/" + name.strip("`")


def adopt(spark: SparkSession, reference: str, place: str) -> None:
    """Gives a Delta table that is there its name in the catalog."""
    if not is_path(reference):
        spark.sql(f"CREATE TABLE IF NOT EXISTS {reference} USING delta LOCATION {_quoted(place)}")


def adopt_plans(spark: SparkSession, target: str) -> None:
    """The same of the plans table beside a target that is a name."""
    if is_path(target):
        return
    place, name = _core.plans_table_of(location(spark, target)), _core.plans_table_of(target)
    if not exists(spark, name) and exists(spark, place):
        adopt(spark, name, place)


def columns_of(spark: SparkSession, reference: str) -> list[str]:
    """The names of a table's columns."""
    return spark.table(table_ref(reference)).columns


def plain_path(path: str) -> str:
    """A path or file: URI as the absolute path that it names; another URI as it is."""
    if path.startswith("file:"):
        return "/" + unquote(path.removeprefix("file:")).lstrip("/")
    return path if "://" in path or path.startswith("dbfs:") else os.path.abspath(path)


def is_local(place: str) -> bool:
    """Whether a location is a path of this machine."""
    return place.startswith("/")


def append(frame: DataFrame, reference: str, **options: Any) -> None:
    """Appends to a table; `options` are those of Delta's writer."""
    writer = frame.write.format("delta").mode("append").options(**options)
    if is_path(reference):
        writer.save(reference)
    else:
        writer.saveAsTable(reference)


__all__ = ["create", "exists", "is_path", "location", "table_ref"]
