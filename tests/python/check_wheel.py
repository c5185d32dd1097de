"""The wheel as a user gets it: installed into a new environment that has nothing else.

The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

PROBE = """
import importlib, json, sys
import mssql_cdc, mssql_cdc.client, mssql_cdc.lsn, mssql_cdc.types, mssql_cdc._core as core
told = {
    "names": sorted(name for name in dir(core) if not name.startswith("__")),
    "methods": {name: sorted(m for m in dir(getattr(core, name)) if not m.startswith("__"))
                for name in dir(core) if isinstance(getattr(core, name), type)},
    "spark": "pyspark" in sys.modules,
    "options": sorted(set(core.source_options()) ^ set(mssql_cdc.SourceOptions.__annotations__)),
    "lsn": mssql_cdc.lsn.normalize("ff"),
}
try:
    mssql_cdc.stream
except ImportError as error:
    told["stream"] = str(error)
print(json.dumps(told))
"""


# What every Python on Linux has, and what libcpp-httplib takes its OpenSSL from.
OF_THE_SYSTEM = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libstdc++.so.6",
                 "libgcc_s.so.1", "libz.so.1", "libssl.so.3", "libcrypto.so.3")


class Tally:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def equal(self, what: str, got, want) -> None:
        self.passed += got == want
        self.failed += got != want
        if got != want:
            print(f"FAILED {what}: {got!r:.600}, expected {want!r:.600}")


def stubs(wheel: zipfile.ZipFile) -> tuple[list[str], dict[str, list[str]]]:
    """What _core.pyi says there is: names, and the methods of each class."""
    names, methods = [], {}
    for node in ast.parse(wheel.read("mssql_cdc/_core.pyi")).body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            names.append(node.name)
            methods[node.name] = sorted(
                part.name for part in node.body
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("__"))
    return sorted(names), methods


def check_content(tally: Tally, wheel: zipfile.ZipFile) -> None:
    there = set(wheel.namelist())
    for name in ("py.typed", "_core.pyi", "__init__.py", "bin/mssql-cdc"):
        tally.equal(f"the wheel has {name}", f"mssql_cdc/{name}" in there, True)
    tally.equal("one extension", sum(name.endswith(".so") and "/_core." in name for name in there),
                1)
    others = {name for name in there if not re.match(r"mssql_cdc(/|-[\d.]+\.dist-info/)", name)}
    tally.equal("nothing outside of the package", others, set())


def check_libraries(tally: Tally, site: pathlib.Path) -> None:
    extension = next(site.glob("mssql_cdc/_core.*.so"))
    for binary in (extension, site / "mssql_cdc" / "bin" / "mssql-cdc"):
        told = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
        tally.equal(f"{binary.name}: every library is found", "not found" in told, False)
        foreign = sorted(name for name, path in re.findall(r"(\S+) => (\S+)", told) if not
                         os.path.realpath(path).startswith(os.path.realpath(site)))
        tally.equal(f"{binary.name}: of the system", [name for name in foreign
                                                      if name not in OF_THE_SYSTEM], [])
        needed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True).stdout
        tally.equal(f"{binary.name}: has its own OpenSSL", "libssl" in needed, False)
    shown = subprocess.run(["nm", "-D", "-g", "--defined-only", extension], capture_output=True,
                           text=True).stdout
    named = [line.split()[-1] for line in shown.splitlines()]
    tally.equal("the extension shows its entry only", named, ["PyInit__core"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", type=pathlib.Path, help="the folder the wheel is in")
    parser.add_argument("--version", default="0.1.0")
    args = parser.parse_args()
    tally = Tally()
    (path,) = args.wheels.glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-wheel-") as name, \
            zipfile.ZipFile(path) as wheel:
        check_content(tally, wheel)
        folder = pathlib.Path(name)
        venv.create(folder, with_pip=False)
        python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps",
                        "--no-index", "--quiet", "--disable-pip-version-check", path], check=True)
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, env=clean,
                              cwd=folder)
        tally.equal("import: nothing told", done.stderr, "")
        told = ast.literal_eval(done.stdout.replace("false", "False").replace("true", "True"))
        names, methods = stubs(wheel)
        tally.equal("stubs: names", told["names"], names)
        tally.equal("stubs: methods", told["methods"], methods)
        tally.equal("import: no PySpark", told["spark"], False)
        tally.equal("import: SourceOptions has every option", told["options"], [])
        tally.equal("import: the core answers", told["lsn"], "0x" + "FF".zfill(20))
        tally.equal("stream: needs PySpark", "needs PySpark" in told.get("stream", ""), True)
        script = subprocess.run([folder / "bin" / "mssql-cdc", "--version"], capture_output=True,
                                text=True, env=clean)
        tally.equal("console script", (script.returncode, args.version in script.stdout), (0, True))
        wrong = subprocess.run([folder / "bin" / "mssql-cdc", "no-such-command"],
                               capture_output=True, text=True, env=clean)
        tally.equal("console script: exit code of the program", wrong.returncode, 64)
        check_libraries(tally, next((folder / "lib").glob("python*")) / "site-packages")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
