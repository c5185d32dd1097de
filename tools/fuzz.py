"""`./dev fuzz [TARGET ...] [--seconds N]`: libFuzzer over every *_fuzz.cc, under clang 16.

Each target starts from its seed corpus in
tests/corpus; new inputs are kept in build/fuzz/corpus. A canary with a mistake in it must be
found first. A failing input is kept in build/fuzz/artifacts, with the command that replays
it printed. The last line is `N passed, N failed`.
"""

import argparse
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import dev_paths

ROOT = dev_paths.ROOT
FOLDER = dev_paths.BUILD / "fuzz"
CORPUS = FOLDER / "corpus"
ARTIFACTS = FOLDER / "artifacts"
COMPILER = "clang++-16"
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all -O1 -g1"
CANARY_SECONDS_MAX = 30


def targets() -> dict[str, pathlib.Path]:
    """Name -> source of each fuzz target: tokens -> src/tds/tokens_fuzz.cc."""
    return {path.stem.removesuffix("_fuzz"): path
            for folder in ("src", "sim")
            for path in sorted((ROOT / folder).rglob("*_fuzz.cc"))}


def must(command: list) -> None:
    """Runs a step of the build; its failure ends the program."""
    words = [str(word) for word in command]
    if subprocess.run(words, cwd=ROOT, env=dev_paths.environment(), check=False).returncode != 0:
        sys.exit(f"fuzz: {' '.join(words)} failed")


def build(names: list[str]) -> None:
    """Builds the targets and the canary."""
    must(["cmake", "-S", ROOT, "-B", FOLDER, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={COMPILER}",
          "-DCMAKE_C_COMPILER=clang-16", "-DCMAKE_BUILD_TYPE=None", "-DMSSQL_CDC_FUZZERS=ON",
              f"-DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link {SANITIZERS}"])
    must(["cmake", "--build", FOLDER, "-j2", "--target", *(f"{name}_fuzz" for name in names)])
    must([COMPILER, "-O1", "-fsanitize=fuzzer", ROOT / "tests/fuzz_canary.cc", "-o",
          FOLDER / "canary_fuzz"])


def fuzz(name: str, seconds: int) -> tuple[bool, str]:
    """Runs one target; whether it found nothing, and what it printed."""
    found = CORPUS / name
    found.mkdir(parents=True, exist_ok=True)
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    command = [FOLDER / f"{name}_fuzz", f"-max_total_time={seconds}", "-timeout=10",
               "-rss_limit_mb=2048", f"-artifact_prefix={ARTIFACTS}/{name}-",
               "-print_final_stats=1", found]
    seeds = ROOT / "tests/corpus" / name
    if seeds.is_dir():
        command.append(seeds)
    done = subprocess.run([str(word) for word in command], cwd=ROOT, check=False,
                          env=dev_paths.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode == 0, done.stdout


def last_line_with(text: str, word: str) -> str:
    lines = [line for line in text.splitlines() if word in line]
    return lines[-1] if lines else ""


def main() -> int:
    known = targets()
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", help=", ".join(known))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    given = parser.parse_args()
    names = given.target or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}")
    build(names)
    clean, _ = fuzz("canary", CANARY_SECONDS_MAX)
    print("canary:", "NOT FOUND, so this fuzzer finds nothing" if clean else "found")
    failed = 1 if clean else 0
    with ThreadPoolExecutor(2) as pool:
        for name, (is_clean, text) in zip(
                names, pool.map(lambda one: fuzz(one, given.seconds), names)):
            executed = last_line_with(text, "number_of_executed_units")
            print(f"{name}: {'clean' if is_clean else 'FAILED'} {executed}", flush=True)
            if not is_clean:
                failed += 1
                print(*text.splitlines()[-40:], sep="\n")
                print(f"replay: {FOLDER}/{name}_fuzz {ARTIFACTS}/{name}-...")
    print(f"{len(names) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
