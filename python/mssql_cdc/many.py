"""Several streams of one session: started in order, awaited and stopped together."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mssql_cdc import _core, tables
from mssql_cdc.pipeline import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

_START_SECONDS_MAX = 120


def _own_options(capture_instances: str | Iterable[str] | Mapping[str, Mapping[str, str]]
                 ) -> dict[str, Mapping[str, str]]:
    if isinstance(capture_instances, str):
        return {capture_instances: {}}
    if isinstance(capture_instances, Mapping):
        return dict(capture_instances)
    return {name: {} for name in capture_instances}


def _merged(shared: Mapping[str, str], own: Mapping[str, str], name: str) -> dict[str, str]:
    overridden = {key.lower() for key in own} | {"captureinstance"}
    made = {key: value for key, value in shared.items() if key.lower() not in overridden}
    made |= {key: value for key, value in own.items() if key.lower() != "captureinstance"}
    return {**made, "captureInstance": name}


def _await_start(query: StreamingQuery) -> None:
    """Waits until the query's source is there, or the query has ended."""
    until = time.monotonic() + _START_SECONDS_MAX
    while (query.isActive and query.status["message"].startswith("Initializing")
           and time.monotonic() < until):
        time.sleep(0.1)


def start_many(
    spark: SparkSession,
    options: Mapping[str, str],
    capture_instances: str | Iterable[str] | Mapping[str, Mapping[str, str]],
    *,
    target: str,
    app_id: str,
    checkpoint: str,
    facts_table: str | None = None,
    **to_delta_kwargs: Any,
) -> dict[str, StreamingQuery]:
    """One `to_delta` per capture instance; `{ci}` in the templates is its name.

    A mapping gives each its own options. If one cannot be started, those that were are stopped.
    """
    templates = {"target": target, "app_id": app_id, "checkpoint": checkpoint}
    for name, template in templates.items():
        if "{ci}" not in template:
            raise ValueError(f"{name} must contain {{ci}}, the capture instance's place: {template}")
    if facts_table is not None and not tables.is_path(facts_table):
        tables.create(spark, facts_table, _core.facts_definition())
    queries: dict[str, StreamingQuery] = {}
    try:
        for name, own in _own_options(capture_instances).items():
            queries[name] = stream(spark, _merged(options, own, name)).to_delta(
                **{key: template.format(ci=name) for key, template in templates.items()},
                facts_table=facts_table, **to_delta_kwargs)
            _await_start(queries[name])
    except BaseException:
        stop_all(queries)
        raise
    return queries


def await_all(queries: Mapping[str, StreamingQuery], *,
              timeout: float | None = None) -> dict[str, Exception]:
    """Waits for all, `timeout` seconds at most; the errors of those that ended with one."""
    until = None if timeout is None else time.monotonic() + timeout
    failures: dict[str, Exception] = {}
    for name, query in queries.items():
        try:
            if until is None:
                query.awaitTermination()
            else:
                left = math.ceil(until - time.monotonic())
                if left > 0:
                    query.awaitTermination(left)
                elif not query.isActive and query.exception() is not None:
                    failures[name] = query.exception()
        except Exception as error:
            failures[name] = error
    return failures


def stop_all(queries: Mapping[str, StreamingQuery]) -> None:
    """Stops each, in order."""
    for query in queries.values():
        query.stop()


__all__ = ["await_all", "start_many", "stop_all"]
