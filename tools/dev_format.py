"""clang-format over every C++ file of the tree, in the pinned version."""

import dev_paths
import dev_run

FOLDERS = ["src", "sim", "tests", "bench"]


def sources() -> list:
    return sorted(
        path
        for folder in FOLDERS
        for path in (dev_paths.ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cc")
    )


def formatter():
    return dev_paths.cache() / "venv" / "bin" / "clang-format"


def check(name: str) -> None:
    dev_run.run(name, [formatter(), "--dry-run", "-Werror", *sources()])


def rewrite(name: str) -> None:
    dev_run.run(name, [formatter(), "-i", *sources()])
