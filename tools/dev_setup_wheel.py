"""The Python package: the environment it is built and run in, and the wheel of this checkout.

The environment lies in the cache; the wheel is unpacked below `build`, so that checkouts do not
see each other's. `site()` is what goes onto the Python path.
"""

import pathlib
import shutil
import venv

import dev_paths
import dev_run
import dev_setup_peers

PACKAGE = dev_paths.ROOT / "python"
REQUIREMENTS = PACKAGE / "requirements.txt"
WHEEL = dev_paths.BUILD / "wheel"


def python() -> pathlib.Path:
    return dev_paths.cache() / "spark-own" / "bin" / "python"


def site() -> pathlib.Path:
    return WHEEL / "site"


def install_python_packages() -> list[str]:
    print("installing Spark for the Python package", flush=True)
    if not python().exists():
        venv.create(dev_paths.cache() / "spark-own", with_pip=True)
    installed = dev_setup_peers.done(
        [python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         "-r", REQUIREMENTS], dev_paths.cache())
    return [] if installed else ["Python packages of python"]


def setup(stamped, stamp_of) -> list[str]:
    """Brings the environment to what the list says; returns what could not be had."""
    if not python().exists():
        (dev_paths.cache() / "spark-own.stamp").unlink(missing_ok=True)
    return stamped("spark-own", stamp_of(REQUIREMENTS), install_python_packages)


def build(name: str) -> None:
    """Builds the wheel and unpacks it; raises StepFailed."""
    environment = dict(dev_paths.environment(), CMAKE_BUILD_PARALLEL_LEVEL="2",
                       CMAKE_GENERATOR="Ninja")
    pip = [python(), "-m", "pip", "--disable-pip-version-check"]
    shutil.rmtree(WHEEL / "dist", ignore_errors=True)
    dev_run.run(name, [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", WHEEL / "dist",
                       "-C", f"build-dir={WHEEL}", PACKAGE], env=environment)
    shutil.rmtree(site(), ignore_errors=True)
    dev_run.run(name, [*pip, "install", "--no-deps", "--target", site(),
                       *sorted((WHEEL / "dist").glob("*.whl"))], env=environment)
