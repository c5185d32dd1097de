"""Options as the extension takes them, and the function that gives access tokens."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

log = logging.getLogger("mssql_cdc")


def texts(options: Mapping[str, object]) -> dict[str, str]:
    """The options as a dict of texts; ValueError for a value that is none."""
    made = {}
    for name, value in dict(options).items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"option {name} must be a text, as Spark's options are; "
                             f"it is a {type(value).__name__}")
        made[name] = value
    return made


def find(options: Mapping[str, str], name: str) -> str | None:
    """The value of `name` in any case, "" too."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def without(options: Mapping[str, str], *names: str) -> dict[str, str]:
    """The options but for those names, in any case."""
    dropped = {name.lower() for name in names}
    return {key: value for key, value in options.items() if key.lower() not in dropped}


class TokenFunction:
    """The function named by option tokenProvider, imported when it is first called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = _import_function(name)

    def __call__(self) -> str:
        try:
            token = self.function()
        except Exception as error:
            raise RuntimeError(f"tokenProvider {self.name} failed: {type(error).__name__}") from error
        if not isinstance(token, str) or not token:
            raise TypeError(f"tokenProvider {self.name} must return a text that is not empty; "
                            f"it returned a {type(token).__name__}")
        return token


def _import_function(name: str) -> Callable[[], str]:
    module, colon, function = name.partition(":")
    try:
        if not colon or not module or not function:
            raise ImportError("it is not package.module:function")
        found = getattr(importlib.import_module(module), function)
        if not callable(found):
            raise ImportError("it is no function")
        return found
    except (ImportError, AttributeError) as error:
        raise ValueError(f"tokenProvider {name} cannot be imported: {error}") from error


def tokens(options: Mapping[str, str]) -> Any:
    """What gives access tokens where the options name a Python function for it, or connections where
    they ask for another client."""
    from mssql_cdc._drivers import connector

    other = connector(options)
    if other is not None:
        return other
    name = find(options, "tokenProvider")
    if not name or name.startswith(("command:", "file:")):
        return None
    return TokenFunction(name)


def warn(warnings: Iterable[str]) -> None:
    """Puts what the core warned of into the job's log."""
    for text in warnings:
        log.warning("%s", text)
