"""The fake's writer and other clients' values: what of the package needs neither core nor Spark."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, os.fspath(ROOT / "python"))

from mssql_cdc import _drivers  # noqa: E402
from mssql_cdc.fake import FakeCdcDatabase  # noqa: E402

AT = datetime.datetime(2026, 11, 20, 8, 0)


class Fake(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def lines(self, name):
        return [json.loads(line) for line in (self.path / name).read_text().splitlines()]

    def object(self, name):
        return json.loads((self.path / name).read_text())

    def made(self, **more):
        return FakeCdcDatabase(self.path, ["dbo_a"], keys={"dbo_a": "id"},
                               columns={"dbo_a": "id INT, `a b` decimal(9,2), note STRING"}, **more)

    def test_columns_are_pairs_in_upper_case_whatever_they_were_given_as(self):
        self.made()
        self.assertEqual(self.object("instances.json"), {"dbo_a": {
            "table": "dbo_a", "created": None,
            "columns": [["id", "INT"], ["a b", "DECIMAL(9,2)"], ["note", "STRING"]]}})

    def test_an_update_has_two_lines_under_one_number(self):
        database = self.made()
        first = database.commit("dbo_a", [(2, {"id": 1, "note": "x"}), (2, {"id": 2, "note": "y"})], AT)
        database.commit("dbo_a", [(3, {"id": 1, "note": "x"}), (4, {"id": 1, "note": "z"}),
                                  (1, {"id": 2, "note": "y"})], AT)
        told = [(line["seqval"][-2:], line["command_id"], line["operation"], line["row"]["note"])
                for line in self.lines("changes/dbo_a.jsonl")]
        self.assertEqual(first, "0x0000002A000001000001")
        self.assertEqual(told, [("02", 1, 2, "x"), ("03", 2, 2, "y"), ("12", 1, 3, "x"),
                                ("12", 1, 4, "z"), ("13", 2, 1, "y")])
        self.assertEqual(self.object("tables/dbo_a.json"), {"[1]": {"id": 1, "note": "z"}})
        self.assertEqual(self.lines("lsn_time_mapping.jsonl")[1],
                         {"start_lsn": "0x0000002A000001000011",
                          "tran_end_time": "2026-11-20T08:00:00.000"})

    def test_an_update_of_what_an_instance_lacks_is_not_in_it(self):
        database = self.made()
        newer = database.add_capture_instance("dbo_a", "id INT", AT)
        self.assertEqual(newer, "dbo_a_v2")
        database.commit("dbo_a", [(3, {"id": 1, "note": "x"}), (4, {"id": 1, "note": "z"})], AT)
        self.assertEqual(len(self.lines("changes/dbo_a.jsonl")), 2)
        self.assertFalse((self.path / "changes/dbo_a_v2.jsonl").exists())
        with self.assertRaisesRegex(ValueError, "two capture instances"):
            database.add_capture_instance("dbo_a", "id INT", AT)

    def test_cleanup_takes_changes_and_entries_below_the_mark(self):
        database = self.made()
        for number in range(3):
            last = database.commit("dbo_a", [(2, {"id": number})], AT)
        database.cleanup("dbo_a", last)
        self.assertEqual([line["row"]["id"] for line in self.lines("changes/dbo_a.jsonl")], [2])
        self.assertEqual(len(self.lines("lsn_time_mapping.jsonl")), 1)
        self.assertEqual(self.object("min_lsn.json"), {"dbo_a": last})

    def test_a_dropped_column_leaves_the_rows_and_comes_back(self):
        database = self.made(computed={"dbo_a": ["Note"]})
        database.commit("dbo_a", [(2, {"id": 1, "note": "x"})], AT)
        self.assertIsNone(self.lines("changes/dbo_a.jsonl")[0]["row"]["note"])
        database.ddl("dbo_a", "note", "ALTER TABLE dbo.a DROP COLUMN note")
        self.assertEqual(self.object("tables/dbo_a.json"), {"[1]": {"id": 1}})
        self.assertEqual(self.object("dropped.json"), {"dbo_a": ["note"]})
        database.ddl("dbo_a", "note", "ALTER TABLE dbo.a ADD note int", new_type="int")
        self.assertEqual(self.object("dropped.json"), {"dbo_a": []})
        self.assertEqual(self.object("instances.json")["dbo_a"]["columns"][2], ["note", "INT"])

    def test_another_writer_goes_on_after_the_last_entry(self):
        self.made().idle(AT)
        self.assertEqual(self.made().idle(AT), "0x0000002A000001000011")


class OtherClients(unittest.TestCase):
    def test_values_come_in_the_types_of_the_cores_client(self):
        import pyarrow as pa

        cases = [
            (pa.array([7, None], pa.uint8()), pa.array([7, None], pa.int16())),
            (pa.array(["ä"], pa.large_string()), pa.array(["ä"], pa.string())),
            (pa.array([b"\x00"], pa.large_binary()), pa.array([b"\x00"], pa.binary())),
            (pa.array([45296123456700], pa.int64()).cast(pa.time64("ns")),
             pa.array(["12:34:56.123456700"])),
            (pa.array([0], pa.timestamp("us", tz="+00:00")),
             pa.array([0], pa.timestamp("us", tz="UTC"))),
            (pa.array([1_999], pa.timestamp("ns")), pa.array([1], pa.timestamp("us"))),
            (pa.array([1], pa.int64()), pa.array([1], pa.int64())),
        ]
        for given, want in cases:
            with self.subTest(str(given.type)):
                made = _drivers._plain(given)
                self.assertEqual(made.type, want.type)
                self.assertTrue(made.equals(want), f"{made} {want}")

    def test_a_drivers_error_tells_no_secret(self):
        connection = _drivers._Connection(["Canary-9", ""])
        with self.assertRaises(_drivers.DriverError) as raised:
            with connection._telling():
                raise RuntimeError("Login failed, PWD=Canary-9")
        self.assertEqual(str(raised.exception), "Login failed, PWD=***")
        self.assertIsNone(raised.exception.__cause__)
        self.assertEqual(_drivers.told(raised.exception)[0], "login")

    def test_errors_are_told_apart_by_what_they_say(self):
        for text, kind in (("The SELECT permission was denied on the object 'x'", "denied"),
                           ("Lock request time out period exceeded.", "busy"),
                           ("Communication link failure", "lost"), ("Incorrect syntax", "server")):
            self.assertEqual(_drivers.told(RuntimeError(text))[0], kind, text)


if __name__ == "__main__":
    unittest.main()
