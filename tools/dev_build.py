"""Configures, builds and tests one preset, and counts the single tests that ran."""

import json
import pathlib
import shutil
import subprocess
import xml.etree.ElementTree as xml

import dev_paths
import dev_run
from dev_run import Outcome, StepFailed

JOB_COUNT = "2"


def build(name: str, preset: str, targets: list[str] | None = None) -> None:
    """Configures if need be and builds `targets` (or everything) of `preset`."""
    folder = dev_paths.BUILD / preset
    if not (folder / "build.ninja").exists():
        dev_run.run(name, ["cmake", "--preset", preset])
    dev_run.run(name, ["cmake", "--build", folder, "-j", JOB_COUNT]
                + (["--target", *targets] if targets else []))


def listed_tests(folder: pathlib.Path, arguments: list[str]) -> dict[str, str]:
    """The tests ctest would run, as name -> file name of the program."""
    shown = subprocess.run(
        ["ctest", "--show-only=json-v1", *arguments], cwd=folder,
        env=dev_paths.environment(), capture_output=True, text=True, check=True,
    )
    return {
        test["name"]: pathlib.Path(test["command"][0]).name
        for test in json.loads(shown.stdout)["tests"]
        if "command" in test
    }


def count_cases(path: pathlib.Path) -> Outcome:
    """The cases of one GoogleTest report."""
    suites = xml.parse(path).getroot()
    total = int(suites.get("tests", 0)) - int(suites.get("disabled", 0))
    failed = int(suites.get("failures", 0)) + int(suites.get("errors", 0))
    return Outcome(total - failed, failed)


def count(programs: dict[str, str], report: pathlib.Path, results: pathlib.Path) -> Outcome:
    """Adds up a ctest run: the cases of each GoogleTest program, one for any other.

    A program that failed although its report shows no failed case (a sanitizer at exit, a
    crash before the report) counts as one failure more.
    """
    total = Outcome()
    for case in xml.parse(report).getroot().iter("testcase"):
        good = case.get("status") == "run"
        stem = programs.get(case.get("name", ""), "")
        reports = sorted(results.glob(f"{stem}.xml")) if stem else []
        counted = Outcome()
        for path in reports:
            counted.add(count_cases(path))
            path.unlink()
        if good and not reports:
            counted.passed += 1
        if not good and counted.failed == 0:
            counted.failed += 1
        total.add(counted)
    return total


def test(name: str, preset: str, arguments: list[str]) -> Outcome:
    """Runs the ctest tests that `arguments` choose. Requires that `preset` is built."""
    folder = dev_paths.BUILD / preset
    programs = listed_tests(folder, arguments)
    if not programs:
        raise StepFailed(f"ctest {' '.join(arguments)} chooses no test")
    results = folder / "results" / name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    report = results / "ctest-report"
    code = dev_run.run(
        name,
        ["ctest", "--output-on-failure", "--timeout", "900", "-j", JOB_COUNT,
         "--output-junit", report, *arguments],
        check=False, cwd=folder,
        env=dict(dev_paths.environment(), GTEST_OUTPUT=f"xml:{results}/"),
    )
    if not report.exists():
        dev_run.show_end(dev_run.LOGS / f"{name}.log")
        raise StepFailed("ctest wrote no report")
    counted = count(programs, report, results)
    if code != 0:
        dev_run.show_end(dev_run.LOGS / f"{name}.log")
        if counted.failed == 0:
            counted.failed = 1
    return counted
