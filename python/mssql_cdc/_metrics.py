"""What planner and tasks leave for the sink, in the directory of option metricsPath.

One file a range, `read-<after>-<through>.json`, and one a batch, `batch-<end>.json`, each written
whole. Names come from positions, so a retried task or a replanned batch writes the same file again.
A file that cannot be written is told of in the log and is no reason to fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from typing import Protocol

from mssql_cdc._sessions import log


class _Folder(Protocol):
    def write(self, name: str, text: str) -> None: ...

    def read(self) -> dict[str, str]: ...

    def remove(self, name: str) -> None: ...


class _LocalFolder:
    """A path, written by Python's file functions."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)

    def write(self, name: str, text: str) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.path / f"{name}.{os.getpid()}.tmp"
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, self.path / name)

    def read(self) -> dict[str, str]:
        found = {}
        for path in self.path.glob("*.json"):
            with contextlib.suppress(OSError):
                found[path.name] = path.read_text(encoding="utf-8")
        return found

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


class _UriFolder:
    """A URI that pyarrow.fs opens; credentials come from its defaults on each node."""

    def __init__(self, uri: str) -> None:
        from pyarrow import fs

        try:
            self.files, self.path = fs.FileSystem.from_uri(uri)
        except Exception as error:
            # Its text may show the URI's query, which may hold a key.
            raise ValueError(f"metricsPath {uri.partition('?')[0]} cannot be opened "
                             f"({type(error).__name__})") from None

    def write(self, name: str, text: str) -> None:
        self.files.create_dir(self.path, recursive=True)
        whole, partial = f"{self.path}/{name}", f"{self.path}/{name}.tmp"
        with self.files.open_output_stream(partial) as into:
            into.write(text.encode())
        try:
            self.files.move(partial, whole)
        except Exception:
            with self.files.open_output_stream(whole) as into:
                into.write(text.encode())
            self.files.delete_file(partial)

    def read(self) -> dict[str, str]:
        from pyarrow import fs

        found = {}
        for entry in self.files.get_file_info(fs.FileSelector(self.path, allow_not_found=True)):
            if entry.is_file and entry.base_name.endswith(".json"):
                with contextlib.suppress(OSError), self.files.open_input_stream(entry.path) as read:
                    found[entry.base_name] = read.read().decode()
        return found

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.files.delete_file(f"{self.path}/{name}")


def is_uri(path: str) -> bool:
    """Whether this is a URI with a scheme of more than one letter."""
    scheme, colon, _ = path.partition(":")
    return bool(colon) and len(scheme) > 1 and scheme.replace("+", "").replace(".", "").replace(
        "-", "").isalnum() and not path.startswith("/")


def below(path: str, name: str) -> str:
    """`path`/`name`; a URI's query stays at its end."""
    if not is_uri(path):
        return os.path.join(path, name)
    folder, question, query = path.partition("?")
    return f"{folder.rstrip('/')}/{name}{question}{query}"


class Metrics:
    """The directory of one stream's files; without one, nothing is written or found."""

    def __init__(self, path: str | None) -> None:
        self.folder: _Folder | None = None
        if path:
            self.folder = _UriFolder(path) if is_uri(path) else _LocalFolder(path)

    def leave(self, name: str, text: str) -> None:
        """Writes one file; a failure is only logged."""
        if self.folder is None:
            return
        try:
            self.folder.write(name, text)
        except Exception as error:
            log.warning("metrics file %s was not written: %s", name, error)

    def leave_batch(self, summary: str) -> None:
        """What the planner tells of a batch."""
        self.leave(f"batch-{json.loads(summary)['end']['lsn']}.json", summary)

    def leave_read(self, report: str) -> None:
        """What a task tells of its range."""
        told = json.loads(report)
        self.leave(f"read-{told['after']}-{told['through']}.json", report)

    def collect(self) -> tuple[str | None, list[str], list[str]]:
        """The newest batch's summary, the reports of its ranges, and the names of all files."""
        try:
            files = self.folder.read() if self.folder else {}
        except Exception as error:
            log.warning("metrics cannot be listed: %s", error)
            files = {}
        batches = sorted(name for name in files if name.startswith("batch-"))
        if not batches:
            return None, [], list(files)
        summary = files[batches[-1]]
        names = [f"read-{range_['after']}-{range_['through']}.json"
                 for range_ in json.loads(summary)["ranges"]]
        return summary, [files[name] for name in names if name in files], list(files)

    def remove(self, names: list[str]) -> None:
        """Removes files that were folded."""
        for name in names:
            try:
                if self.folder:
                    self.folder.remove(name)
            except Exception as error:
                log.warning("metrics file %s was not removed: %s", name, error)
