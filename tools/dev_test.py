"""How ./dev counts tests: nothing that failed may look passed."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import dev_build
import dev_commands
import dev_run
import dev_steps
from dev_run import Outcome

REPORT = """<testsuite name="x">
<testcase name="good" status="run"/>
<testcase name="leaky" status="fail"/>
<testcase name="plain" status="run"/>
<testcase name="broken" status="fail"/>
</testsuite>"""


class Counting(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_cases_of_gtest_programs_and_whole_other_programs_are_added_up(self):
        report = self.folder / "report"
        report.write_text(REPORT)
        for stem, failures in (("good_test", 0), ("leaky_test", 0)):
            (self.folder / f"{stem}.xml").write_text(
                f'<testsuites tests="5" failures="{failures}" disabled="1" errors="0"/>')
        programs = {"good": "good_test", "leaky": "leaky_test",
                    "plain": "plain_replay", "broken": "broken_test"}
        self.assertEqual(dev_build.count(programs, report, self.folder),
                         Outcome(passed=4 + 4 + 1, failed=1 + 1))

    def test_a_log_without_a_closing_line_is_a_failure(self):
        logs, dev_run.LOGS = dev_run.LOGS, self.folder
        self.addCleanup(setattr, dev_run, "LOGS", logs)
        cases = [("", Outcome(failed=1)),
                 ("3 passed, 1 failed\n", Outcome(3, 1)),
                 ("Ran 7 tests in 0.1s\n\nOK\n", Outcome(7, 0)),
                 ("Ran 0 tests in 0.1s\n", Outcome(failed=1))]
        for text, outcome in cases:
            (self.folder / "step.log").write_text(text)
            self.assertEqual(dev_steps.closing_count("step"), outcome, text)

    def test_a_step_that_breaks_is_one_failure_and_ends_nothing(self):
        logs, dev_run.LOGS = dev_run.LOGS, self.folder
        self.addCleanup(setattr, dev_run, "LOGS", logs)

        def breaks(name):
            raise dev_run.StepFailed("on purpose, by dev_test.py")

        self.assertEqual(dev_run.timed("breaks", breaks)[0], Outcome(failed=1))

    def test_each_step_has_a_name_of_its_own(self):
        names = [step.name for step in dev_steps.STEPS]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_the_overview_names_every_command(self):
        for name in dev_commands.COMMANDS:
            self.assertIn(f"  {name}", dev_commands.overview())


if __name__ == "__main__":
    unittest.main()
