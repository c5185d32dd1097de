"""Fetches what the peers in JavaScript, Java and Rust need: npm packages, Maven artefacts, crates.

Everything is pinned beside the peer's source and goes into the cache. Like dev_setup, each
function returns a complaint for what could not be had.
"""

import pathlib
import shutil
import subprocess

import dev_paths

PEERS = dev_paths.ROOT / "tests" / "peers"
NODE, JAVA, DEBEZIUM, RUST = (PEERS / name for name in ("node", "java", "debezium", "rust"))
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Where a program is not there already, these Debian packages bring it.
PROGRAM_PACKAGES = {
    "node": ["nodejs"],
    "npm": ["npm"],
    "javac": ["openjdk-17-jdk-headless"],
    "mvn": ["maven"],
}


def wanted_debian_packages() -> list[str]:
    return [package for program, packages in PROGRAM_PACKAGES.items()
            if not shutil.which(program) for package in packages]


def done(command: list, folder: pathlib.Path) -> bool:
    ran = subprocess.run([str(word) for word in command], cwd=folder,
                         env=dev_paths.environment(), stdin=subprocess.DEVNULL,
                         capture_output=True, text=True)
    if ran.returncode != 0:
        print(ran.stdout[-2000:], ran.stderr[-2000:], sep="\n")
    return ran.returncode == 0


def fetch_npm_packages() -> list[str]:
    print("fetching npm packages", flush=True)
    folder = dev_paths.cache() / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NODE / name, folder / name)
    fetched = shutil.which("npm") and done(["npm", "ci", "--ignore-scripts"], folder)
    return [] if fetched else ["npm packages of tests/peers/node"]


def fetch_maven_artefacts(source: pathlib.Path, name: str) -> list[str]:
    """All that the pom.xml in `source` names, as jars in java/NAME of the cache."""
    what = f"Maven artefacts of {source.relative_to(dev_paths.ROOT)}"
    print(f"fetching {what}", flush=True)
    folder = dev_paths.cache() / "java" / name
    shutil.rmtree(folder, ignore_errors=True)
    fetched = shutil.which("mvn") and done(
        ["mvn", "-q", "-B", "-f", source / "pom.xml",
         f"-Dmaven.repo.local={dev_paths.cache() / 'maven'}", COPY_DEPENDENCIES,
         f"-DoutputDirectory={folder}"], dev_paths.cache())
    return [] if fetched else [what]


def fetch_crates() -> list[str]:
    print("building the peer in Rust", flush=True)
    command = ["cargo", "build", "--quiet", "--release", "--locked",
               "--target-dir", dev_paths.cache() / "cargo" / "peers"]
    return [] if done(command, RUST) else ["crates of tests/peers/rust"]


def setup(stamped, stamp_of) -> list[str]:
    """Fetches each once per list of versions; returns what could not be had."""
    complaints = stamped("node", stamp_of(NODE / "package-lock.json"), fetch_npm_packages)
    complaints += stamped("java", stamp_of(JAVA / "pom.xml"),
                          lambda: fetch_maven_artefacts(JAVA, "peers"))
    complaints += stamped("debezium", stamp_of(DEBEZIUM / "pom.xml"),
                          lambda: fetch_maven_artefacts(DEBEZIUM, "debezium"))
    complaints += stamped("rust", stamp_of(RUST / "Cargo.lock", RUST / "src/main.rs"),
                          fetch_crates)
    return complaints
