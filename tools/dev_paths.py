"""Where things are: the checkout, the cache outside it, the environment of child processes."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"


def cache() -> pathlib.Path:
    """The folder for everything that outlives a checkout: venv, ccache, crates, modules."""
    named = os.environ.get("MSSQL_CDC_CACHE")
    if named:
        return pathlib.Path(named).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "mssql-cdc"


def venv_python() -> pathlib.Path:
    return cache() / "venv" / "bin" / "python"


def environment() -> dict[str, str]:
    """What every build, test and bench process runs with."""
    made = dict(os.environ)
    made["MSSQL_CDC_CACHE"] = str(cache())
    made["MSSQL_CDC_CARGO_TARGET_DIR"] = str(cache() / "cargo")
    made["CCACHE_DIR"] = str(cache() / "ccache")
    made["CCACHE_MAXSIZE"] = "4G"
    made["GOMODCACHE"] = str(cache() / "go" / "mod")
    made["GOCACHE"] = str(cache() / "go" / "build")
    made["GOFLAGS"] = "-modcacherw"
    made["GOTOOLCHAIN"] = "local"
    made["PYTHONDONTWRITEBYTECODE"] = "1"
    made["MSSQL_CDC_PYTHON"] = str(venv_python())
    return made


def program(name: str, preset: str = "release") -> pathlib.Path:
    """Where the build of `preset` puts the program `name` (folders of the tree included)."""
    return BUILD / preset / name
