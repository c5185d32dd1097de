"""Installs Spark, Delta and the existing package, which tests compare with.

They live in an environment of their own beside ours: `spark_python()` runs it, `jars()` is the
folder of the Delta jars a session loads.
"""

import pathlib
import shutil
import venv

import dev_paths
import dev_setup_peers

FILES = dev_paths.ROOT / "tests" / "existing"
REQUIREMENTS = FILES / "requirements.txt"
POM = FILES / "pom.xml"
TOOLCHAIN = ["java", "mvn"]


def spark_python() -> pathlib.Path:
    return dev_paths.cache() / "spark" / "bin" / "python"


def jars() -> pathlib.Path:
    return dev_paths.cache() / "java" / "spark"


def install_python_packages() -> list[str]:
    print("installing Spark and the existing package", flush=True)
    if not spark_python().exists():
        venv.create(dev_paths.cache() / "spark", with_pip=True)
    installed = dev_setup_peers.done(
        [spark_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--no-deps", "-r", REQUIREMENTS], dev_paths.cache())
    return [] if installed else ["Python packages of tests/existing"]


def fetch_jars() -> list[str]:
    return dev_setup_peers.fetch_maven_artefacts(FILES, jars().name)


def setup(stamped, stamp_of) -> list[str]:
    """Brings both to what the lists say; returns what could not be had."""
    complaints = [f"program {name}" for name in TOOLCHAIN if not shutil.which(name)]
    for name, there, listed, work in (
        ("spark", spark_python(), REQUIREMENTS, install_python_packages),
        ("jars", jars(), POM, fetch_jars),
    ):
        if not there.exists():
            (dev_paths.cache() / f"{name}.stamp").unlink(missing_ok=True)
        complaints += stamped(name, stamp_of(listed), work)
    return complaints
