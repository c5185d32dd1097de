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
OLDER_REQUIREMENTS = dev_paths.ROOT / "tests" / "spark" / "requirements-4.1.txt"
WHEEL = dev_paths.BUILD / "wheel"


def python() -> pathlib.Path:
    return dev_paths.cache() / "spark-own" / "bin" / "python"


def site() -> pathlib.Path:
    return WHEEL / "site"


def older_python() -> pathlib.Path:
    return dev_paths.cache() / "spark-4.1" / "bin" / "python"


def install_packages(of: pathlib.Path, listed: pathlib.Path) -> list[str]:
    """Packages for the interpreter `of`, in an environment that is made if need be."""
    print(f"installing Spark: {of.parent.parent.name}", flush=True)
    if not of.exists():
        venv.create(of.parent.parent, with_pip=True)
    installed = dev_setup_peers.done(
        [of, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         "-r", listed], dev_paths.cache())
    return [] if installed else [f"Python packages of {listed.relative_to(dev_paths.ROOT)}"]


def bring(stamped, stamp_of, of: pathlib.Path, listed: pathlib.Path) -> list[str]:
    name = of.parent.parent.name
    if not of.exists():
        (dev_paths.cache() / f"{name}.stamp").unlink(missing_ok=True)
    return stamped(name, stamp_of(listed), lambda: install_packages(of, listed))


def setup(stamped, stamp_of) -> list[str]:
    """Brings the environment to what the list says; returns what could not be had."""
    return bring(stamped, stamp_of, python(), REQUIREMENTS)


def setup_older(stamped, stamp_of) -> list[str]:
    """The same of Spark 4.1, which `./dev spark` alone needs."""
    return bring(stamped, stamp_of, older_python(), OLDER_REQUIREMENTS)


def build(name: str) -> None:
    """Builds the wheel and unpacks it; raises StepFailed."""
    # The compilers by the names that CMake finds for the presets: ccache tells names apart.
    environment = dict(dev_paths.environment(), CMAKE_BUILD_PARALLEL_LEVEL="2",
                       CMAKE_GENERATOR="Ninja", CC="cc", CXX="c++")
    pip = [python(), "-m", "pip", "--disable-pip-version-check"]
    shutil.rmtree(WHEEL / "dist", ignore_errors=True)
    dev_run.run(name, [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", WHEEL / "dist",
                       "-C", f"build-dir={WHEEL}", PACKAGE], env=environment)
    shutil.rmtree(site(), ignore_errors=True)
    dev_run.run(name, [*pip, "install", "--no-deps", "--target", site(),
                       *sorted((WHEEL / "dist").glob("*.whl"))], env=environment)
