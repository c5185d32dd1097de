"""The parts of the Python package that need neither the extension nor Spark."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, os.fspath(ROOT / "python"))

from mssql_cdc import DataLossError, SchemaChangedError, _errors, _metrics, _sessions  # noqa: E402
from mssql_cdc import client, is_data_loss, is_schema_changed  # noqa: E402
from mssql_cdc.types import SourceOptions  # noqa: E402

BATCH = {"start": {"lsn": "0x01", "commit_ts": ""}, "end": {"lsn": "0x09", "commit_ts": ""},
         "ranges": [{"after": "0x01", "through": "0x05"}, {"after": "0x05", "through": "0x09"}]}


def report(after: str, through: str) -> str:
    return json.dumps({"after": after, "through": through, "rows": 1})


class MetricsFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/not/there yet"

    def both(self):
        yield self.path
        yield "file://" + self.path.replace(" ", "%20") + "-by-uri"

    def test_a_batch_is_found_with_the_reports_of_its_ranges_only(self):
        for path in self.both():
            with self.subTest(path):
                metrics = _metrics.Metrics(path)
                metrics.leave_batch(json.dumps({**BATCH, "end": {"lsn": "0x05"}, "ranges": []}))
                metrics.leave_batch(json.dumps(BATCH))
                for after, through in (("0x05", "0x09"), ("0x01", "0x05"), ("0x01", "0x09")):
                    metrics.leave_read(report(after, through))
                summary, reads, names = metrics.collect()
                self.assertEqual(json.loads(summary), BATCH)
                self.assertEqual(reads, [report("0x01", "0x05"), report("0x05", "0x09")])
                self.assertEqual(len(names), 5)
                metrics.remove(names)
                metrics.remove(names)
                self.assertEqual(metrics.collect(), (None, [], []))

    def test_a_retried_task_replaces_its_report(self):
        metrics = _metrics.Metrics(self.path)
        metrics.leave_batch(json.dumps(BATCH))
        metrics.leave_read(report("0x01", "0x05"))
        metrics.leave_read(report("0x01", "0x05"))
        self.assertEqual(len(metrics.collect()[1]), 1)

    def test_nothing_is_left_without_a_directory(self):
        metrics = _metrics.Metrics(None)
        metrics.leave_batch(json.dumps(BATCH))
        self.assertEqual(metrics.collect(), (None, [], []))

    def test_a_directory_that_cannot_be_made_is_told_of_and_fails_nothing(self):
        pathlib.Path(self.path).parent.mkdir(parents=True)
        pathlib.Path(self.path).write_text("a file is in the way")
        with self.assertLogs("mssql_cdc", "WARNING"):
            _metrics.Metrics(self.path).leave_batch(json.dumps(BATCH))

    def test_a_uri_that_nobody_opens_is_refused_without_its_query(self):
        with self.assertRaisesRegex(ValueError, "dbfs:/metrics cannot") as raised:
            _metrics.Metrics("dbfs:/metrics?key=secret-canary")
        self.assertNotIn("secret-canary", str(raised.exception))

    def test_a_name_goes_before_the_query_of_a_uri(self):
        for path, want in (("/a/b", "/a/b/x"), ("s3://a/b?region=c", "s3://a/b/x?region=c"),
                           ("s3://a/b/", "s3://a/b/x"), ("C:/a", "C:/a/x")):
            self.assertEqual(_metrics.below(path, "x"), want)


class ErrorClasses(unittest.TestCase):
    def test_every_error_of_the_catalogue_has_a_class_that_fits_its_remedy(self):
        catalogue = re.findall(r"ROW\((\d+), (\w+),\s+(\w+),",
                               (ROOT / "src/base/error.h").read_text())
        self.assertGreater(len(catalogue), 40)
        for number, name, remedy in catalogue:
            made = _errors.make(name, f"MC{number}", f"MC{number} {name}: text", {"fact": "1"})
            with self.subTest(name):
                self.assertEqual((made.code, made.name, made.facts),
                                 (f"MC{number}", name, {"fact": "1"}))
                if remedy == "Reseed" and number.startswith("3"):
                    self.assertIsInstance(made, DataLossError)
                if number.startswith("6"):
                    self.assertIsInstance(made, ValueError)
                if number.startswith("2"):
                    self.assertIsInstance(made, ConnectionError)

    def test_errors_are_known_in_what_spark_says_of_a_worker(self):
        for raised, known in ((DataLossError("x"), is_data_loss),
                              (SchemaChangedError("x"), is_schema_changed)):
            name = f"{type(raised).__module__}.{type(raised).__qualname__}"
            self.assertTrue(known(raised))
            self.assertTrue(known(Exception(f"Traceback ...\n{name}: MC3001 ...")))
            self.assertFalse(known(Exception("something else")))
        self.assertEqual(DataLossError.__module__, "mssql_cdc.client")
        self.assertFalse(client.is_data_loss(SchemaChangedError("x")))


class Options(unittest.TestCase):
    def test_names_ignore_case_and_values_are_texts(self):
        options = _sessions.texts({"UserName": "a", "none": None})
        self.assertEqual(options, {"UserName": "a"})
        self.assertEqual(_sessions.find(options, "username"), "a")
        self.assertEqual(_sessions.without({"A": "1", "b": "2"}, "a"), {"b": "2"})
        with self.assertRaisesRegex(ValueError, "numPartitions must be a text"):
            _sessions.texts({"numPartitions": 4})

    def test_source_options_are_those_of_the_core(self):
        table = (ROOT / "src/cdc/option_table.h").read_text()
        names = re.findall(r'OptionRow\{"(\w+)", OptionGroup::kSource', table)
        self.assertEqual(list(SourceOptions.__annotations__), names)

    def test_a_token_function_is_called_each_time_and_told_of_by_name_only(self):
        module = types.ModuleType("token_module_for_test")
        answers = iter(["first", "second", "", None])
        module.token = lambda: next(answers)
        sys.modules[module.__name__] = module
        self.addCleanup(sys.modules.pop, module.__name__)
        function = _sessions.tokens({"tokenprovider": "token_module_for_test:token"})
        self.assertEqual([function(), function()], ["first", "second"])
        for _ in range(2):
            with self.assertRaisesRegex(TypeError, "token_module_for_test:token"):
                function()
        with self.assertRaisesRegex(RuntimeError, "token_module_for_test:token"):
            function()

    def test_a_name_that_is_no_function_is_refused(self):
        for name in ("no_such_module:token", "json:nothing", "json", ":x", "json:"):
            with self.assertRaisesRegex(ValueError, "tokenProvider"):
                _sessions.tokens({"tokenProvider": name})
        for name in ("command:true", "file:/token"):
            self.assertIsNone(_sessions.tokens({"tokenProvider": name}))


if __name__ == "__main__":
    unittest.main()
