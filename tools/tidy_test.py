"""Each check of tidy finds its canary, and leaves the same thing done right alone."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tidy
import tidy_documents
import tidy_options
import tidy_ratchets
import tidy_readers
import tidy_rooms
import tidy_text

CMAKE = """
room(base)
room(tds       DEPENDS base columns)
room(pipeline  DEPENDS base)
room(lake      DEPENDS base                  LIBRARIES rust_delta)
room(sim       DEPENDS base DIR sim LIBRARIES X)
"""
OPTION_ROW = 'OptionRow{"retries", OptionGroup::kLocal, "3",\n "an integer from 0"},'
HEADER = "// What it is for.\n#pragma once\n"

def banned(files: dict[str, str]) -> dict[str, int] | list:
    """The ratchet of banned calls, without a list of what is let be."""
    return tidy_text.banned_calls(files) or []


def readers_document(what_b1_says: str) -> dict[str, str]:
    rows = [f"| B{number} | x | {what_b1_says if number == 1 else 'y'} |\n" for number in tidy_readers.PUBLISHED]
    return {tidy_readers.DOCUMENT: "".join(rows), "a_test.cc": "TEST_F(Source, B1B2ItHolds) {"}


# (condition, check, files in which it finds something, files in which it must not)
CASES = [
    ("a pure room reaches into another", tidy_rooms.check_rooms,
     {"src/tds/a.cc": '#include "lake/lake.h"\n'},
     {"src/tds/a.cc": '#include "base/error.h"\n#include "tds/b.h"\n#include <vector>\n'}),
    ("the simulator shares the client's decoder", tidy_rooms.check_rooms,
     {"sim/wire/a.cc": '#include "tds/decode.h"\n'},
     {"sim/wire/a.cc": '#include "tds/spec.h"\n#include "sim/value.h"\n'}),
    ("the pipeline opens a lake", tidy_rooms.check_rooms,
     {"src/pipeline/a.h": '#include "lake/lake.h"\n'},
     {"src/pipeline/a.h": '#include "lake/spec.h"\n'}),
    ("a folder is no room", tidy_rooms.check_rooms,
     {"src/odds/a.cc": ""}, {"src/base/a.cc": ""}),
    ("a file is called util", tidy_rooms.check_names,
     {"src/base/util.h": ""}, {"src/base/text.h": ""}),
    ("a folder is called helpers", tidy_rooms.check_names,
     {"tests/helpers/a.py": ""}, {"tests/peers/a.py": ""}),
    ("a number is parsed with strtol", banned,
     {"src/tds/a.cc": "long x = strtol(text, &end, 10);\n"},
     {"src/tds/a_test.cc": "strtol(x);", "src/tds/a.cc": '// not strtol(\nconst char* a = "strtol(";\nlog_strtol (1);\n'}),
    ("the clock is read directly", banned,
     {"src/cdc/a.cc": "auto t = std::chrono::system_clock::now();\n"},
     {"src/base/clock.h": "auto t = std::chrono::system_clock::now();\n"}),
    ("dice of its own", banned,
     {"sim/a.cc": "std::uniform_int_distribution<int> d;\n"},
     {"sim/a.cc": "int strand(int); Dice dice(7);\n"}),
    ("a sleep", banned,
     {"src/net/a.cc": "std::this_thread::sleep_for(x);\n"},
     {"src/net/a.cc": "clock.SleepMs(3);\n"}),
    ("an option is not documented as the code has it", tidy_documents.check_options_document,
     {"src/cdc/option_table.h": OPTION_ROW,
      "docs/options.md": "| `retries` | 3 | an integer from 1 | how often |\n"},
     {"src/cdc/option_table.h": OPTION_ROW,
      "docs/options.md": "| `retries` | 3 | an integer from 0 | how often |\n"}),
    ("an option is in the code only", tidy_documents.check_options_document,
     {"src/cdc/option_table.h": OPTION_ROW}, {}),
    ("an option is in the document only", tidy_documents.check_options_document,
     {"docs/options.md": "| `retries` | 3 | an integer from 0 | how often |\n"}, {}),
    ("an option row that the check cannot read", tidy_documents.check_options_document,
     {"src/cdc/option_table.h": 'OptionRow{"a", kGroup, "1"}'}, {}),
    ("an option that no test shows the effect of", tidy_options.check_option_effects,
     {"src/cdc/option_table.h": OPTION_ROW},
     {"src/cdc/option_table.h": OPTION_ROW, tidy_options.EFFECTS[1]: '      {"retries", "0", "2"},\n'}),
    ("an effect of no option", tidy_options.check_option_effects,
     {tidy_options.EFFECTS[0]: '      {"retrys", "0", "2"},\n'}, {}),
    ("a report without a row", tidy_readers.check_readers,
     {tidy_readers.DOCUMENT: readers_document("y")[tidy_readers.DOCUMENT]
      .replace("| B99 | x | y |\n", "")}, readers_document("y")),
    ("a row that names no test", tidy_readers.check_readers,
     {tidy_readers.DOCUMENT: readers_document("test of that name")[tidy_readers.DOCUMENT]},
     readers_document("test of that name")),
    ("a row that names a test in vain", tidy_readers.check_readers,
     readers_document("`Source.B1B2Holds`"), readers_document("`Source.B1B2ItHolds`")),
    ("a header imports a namespace", tidy_text.check_headers,
     {"src/a.h": HEADER + "using namespace std;\n"},
     {"src/a.h": HEADER + "using std::string;\n"}),
    ("a header without its contract", tidy_text.check_headers,
     {"src/a.h": "#pragma once\n"}, {"src/a.h": HEADER}),
    ("an open end", tidy_text.check_open_ends,
     {"src/a.cc": "// TO" "DO: later\n"}, {"src/a.cc": "// TO" "DO(#12): later\n"}),
    ("a path of one machine", tidy_text.check_places,
     {"docs/a.md": "see /ro" "ot/.cache/x\n"}, {"docs/a.md": "see ~/.cache/x, src/root/a\n"}),
    ("the host of a registry", tidy_text.check_places,
     {"tools/a.py": "https://py" "pi.org/simple\n"}, {"rust/Cargo.lock": "crates" ".io\n"}),
    ("an error without a section", tidy_documents.check_error_document,
     {tidy_documents.CATALOGUE: "ROW(1, A, x)ROW(2, B, x)",
      tidy_documents.DOCUMENT: "## MC1 A\n**Cause.** x\n**Cure.** y\n"},
     {tidy_documents.CATALOGUE: "ROW(1, A, x)",
      tidy_documents.DOCUMENT: "## MC1 A\n**Cause.** x\n**Cure.** y\n"}),
    ("a section without a cure", tidy_documents.check_error_document,
     {tidy_documents.CATALOGUE: "ROW(1, A, x)",
      tidy_documents.DOCUMENT: "## MC1 A\n**Cause.** x\n"},
     {tidy_documents.CATALOGUE: "", tidy_documents.DOCUMENT: "## Else\n"}),
    ("a link to nowhere", tidy_documents.check_links,
     {"docs/a.md": "[b](b.md)\n"},
     {"docs/a.md": "[b](b.md#x) [c](https://example.org) [d](#here)\n", "docs/b.md": ""}),
]


def long_function(line_count: int) -> str:
    return "int F(int a,\n      int b) {\n" + "  a += b;\n" * line_count + "}\n"


class Checks(unittest.TestCase):
    def test_each_check_finds_its_canary_and_nothing_else(self):
        for condition, check, wrong, right in CASES:
            with self.subTest(condition):
                room_table = {"CMakeLists.txt": CMAKE}
                self.assertEqual(len(check(room_table | wrong)), 1)
                self.assertEqual(check(room_table | right), [])

    def test_every_check_has_a_canary(self):
        tested = {check for _, check, _, _ in CASES} - {banned}
        tested |= {tidy_ratchets.check_ratchets}
        self.assertEqual(tested, set(tidy.CHECKS))


class Ratchets(unittest.TestCase):
    def tree(self, line_count: int, listed: str = "") -> dict[str, str]:
        return {tidy_documents.CATALOGUE: "", "src/base/a.cc": long_function(line_count),
                "tools/ratchets/long_functions.txt": listed}

    def test_a_long_function_is_found_unless_it_is_listed(self):
        self.assertEqual(len(tidy_ratchets.check_ratchets(self.tree(58))), 1)
        self.assertEqual(tidy_ratchets.check_ratchets(self.tree(57)), [])
        self.assertEqual(
            tidy_ratchets.check_ratchets(self.tree(58, "src/base/a.cc:F 61\n")), [])

    def test_a_listed_function_may_not_grow(self):
        self.assertEqual(
            len(tidy_ratchets.check_ratchets(self.tree(59, "src/base/a.cc:F 61\n"))), 1)

    def test_an_entry_that_is_too_large_is_found_and_shrunk(self):
        tree = self.tree(58, "src/base/a.cc:F 70\nsrc/base/gone.cc:G 80\n")
        self.assertEqual(len(tidy_ratchets.check_ratchets(tree)), 2)
        tree |= tidy_ratchets.shrunk(tree)
        self.assertEqual(tree["tools/ratchets/long_functions.txt"], "src/base/a.cc:F 61\n")
        self.assertEqual(tidy_ratchets.check_ratchets(tree), [])

    def test_functions_are_measured_inside_classes_and_for_tests(self):
        text = ("namespace a {\nclass B {\n public:\n  int Get() const { return 1; }\n"
                "  void Set(int x) {\n    x_ = x;\n  }\n};\n\nTEST(Rows, AreRead) {\n"
                "  EXPECT_EQ(F(1), 2);\n}\n}  // namespace a\n")
        self.assertEqual(list(tidy_ratchets.cpp_functions(text)),
                         [("Set", 3), ("Rows.AreRead", 3)])

    def test_an_error_no_test_names_is_found(self):
        tree = {tidy_documents.CATALOGUE: "ROW(1, Lost, x) ROW(2, Found, x)",
                "src/a_test.cc": "EXPECT_EQ(e.id(), ErrorId::kFound);"}
        self.assertEqual(tidy_ratchets.untested_errors(tree), {"Lost": 1})

    def test_a_long_file_is_found(self):
        tree = {tidy_documents.CATALOGUE: "", "src/a.cc": "\n" * 701, "src/b.cc": "\n" * 700}
        self.assertEqual(tidy_ratchets.long_files(tree), {"src/a.cc": 701})


if __name__ == "__main__":
    unittest.main()
