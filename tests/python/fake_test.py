"""The writer of the fake's files."""

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


if __name__ == "__main__":
    unittest.main()
