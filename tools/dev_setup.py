"""Installs what the project needs: Debian packages, a Python environment, Go modules.

Nothing comes from outside the package registries. What cannot be had is named at the end
and fails the run. A second run with the same lists ends at once.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv

import dev_paths
import dev_setup_peers
import dev_setup_spark
import dev_setup_wheel

TOOLS = dev_paths.ROOT / "tools"
REQUIREMENTS = TOOLS / "requirements.txt"
DEBIAN = TOOLS / "debian-packages.txt"
GO_MODULES = dev_paths.ROOT / "tests" / "peers" / "go"
# Programs of the base machine: told by name when missing, never installed from here.
TOOLCHAIN = ["g++", "cmake", "cargo", "go"]


def listed(path) -> list[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def missing_debian_packages() -> list[str]:
    wanted = listed(DEBIAN) + dev_setup_peers.wanted_debian_packages()
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True, text=True,
    )
    there = {
        line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")
    }
    return [name for name in wanted if name not in there]


def install_debian_packages() -> list[str]:
    """Installs what is missing; returns a complaint for each package that is still missing."""
    missing = missing_debian_packages()
    if not missing:
        return []
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        passwordless = shutil.which("sudo") and subprocess.run(
            ["sudo", "-n", "true"], capture_output=True
        ).returncode == 0
        if not passwordless:
            print("Debian packages are missing. As root:\n")
            print("    apt-get update && " + " ".join(install) + "\n")
            return [f"Debian package {name}" for name in missing]
        install = ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", *install]
    update = install[: install.index("apt-get")] + ["apt-get", "update", "-q"]
    print("installing Debian packages:", *missing, flush=True)
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (update, install):
        done = subprocess.run(command, env=quiet, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return [f"Debian package {name}" for name in missing_debian_packages()]


def stamp_of(*paths) -> str:
    made = hashlib.sha256(sys.version.encode())
    for path in paths:
        made.update(path.read_bytes() if path.exists() else b"absent")
    return made.hexdigest()


def stamped(name: str, stamp: str, work) -> list[str]:
    """Does `work` unless it was done for this very `stamp`; returns its complaints."""
    record = dev_paths.cache() / f"{name}.stamp"
    if record.exists() and record.read_text() == stamp:
        return []
    complaints = work()
    if not complaints:
        record.write_text(stamp)
    return complaints


def install_python_packages() -> list[str]:
    folder = dev_paths.cache() / "venv"
    print("installing Python packages", flush=True)
    if not dev_paths.venv_python().exists():
        venv.create(folder, with_pip=True)
    done = subprocess.run(
        [dev_paths.venv_python(), "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", "--no-deps", "-r", REQUIREMENTS],
        capture_output=True, text=True,
    )
    if done.returncode == 0:
        return []
    print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    freeze = subprocess.run([dev_paths.venv_python(), "-m", "pip", "freeze"],
                            capture_output=True, text=True).stdout.lower().split()
    return [
        f"Python package {name}"
        for name in listed(REQUIREMENTS)
        if name.lower() not in freeze
    ] or ["Python packages (pip failed)"]


def fetch_go_modules() -> list[str]:
    if not (GO_MODULES / "go.mod").exists():
        return []
    print("fetching Go modules", flush=True)
    done = subprocess.run(["go", "mod", "download"], cwd=GO_MODULES,
                          env=dev_paths.environment(), capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-2000:])
    return [] if done.returncode == 0 else ["Go modules of tests/peers/go"]


def setup(peers: bool = True) -> list[str]:
    """Brings the machine to what the project needs; returns what could not be had.

    Without `peers` only what building and the demo need: no foreign drivers, no Spark.
    """
    dev_paths.cache().mkdir(parents=True, exist_ok=True)
    complaints = [f"program {name}" for name in TOOLCHAIN if not shutil.which(name)]
    complaints += install_debian_packages()
    if not dev_paths.venv_python().exists():
        # The environment was removed: what its stamp says is no longer so.
        (dev_paths.cache() / "venv.stamp").unlink(missing_ok=True)
    complaints += stamped("venv", stamp_of(REQUIREMENTS), install_python_packages)
    if not peers:
        return complaints
    if shutil.which("go"):
        go = stamp_of(GO_MODULES / "go.mod", GO_MODULES / "go.sum")
        complaints += stamped("go", go, fetch_go_modules)
    complaints += dev_setup_peers.setup(stamped, stamp_of)
    complaints += dev_setup_spark.setup(stamped, stamp_of)
    complaints += dev_setup_wheel.setup(stamped, stamp_of)
    return complaints
