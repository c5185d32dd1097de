"""What ./dev mutants reads from its inputs."""

import unittest

import mutants


class Reading(unittest.TestCase):
    def test_the_table_of_behaviours(self):
        rows = mutants.behaviours(mutants.TABLE.read_text())
        self.assertEqual({line for _, line in rows}, set(range(1, 18)))
        self.assertEqual(len({name for name, _ in rows}), len(rows))

    def test_a_row_that_is_broken_over_lines(self):
        self.assertEqual(mutants.behaviours('{Behaviour::kA,\n "a_b", 7}'), [("a_b", 7)])

    def test_failed_tests_of_a_run(self):
        output = "[  FAILED  ] Checklist01.Idle (3 ms)\n[       OK ] Checklist01.Other (1 ms)\n"
        self.assertEqual(mutants.failed_tests(output), {"Checklist01.Idle"})

    def test_only_a_failed_test_counts_as_noticed(self):
        for code, failed, wanted in ((0, set(), "GREEN"), (1, {"Checklist01.Idle"}, "red"),
                                     (1, set(), "BROKEN"), (-11, set(), "BROKEN"),
                                     (-6, {"Checklist01.Idle"}, "BROKEN"),
                                     (mutants.TIMED_OUT, set(), "BROKEN")):
            self.assertEqual(mutants.verdict(code, failed), wanted, (code, failed))


if __name__ == "__main__":
    unittest.main()
