"""Published reports about other readers: each has a test named after it, or a line that says why not."""

import re

DOCUMENT = "docs/other_readers.md"
# The numbers of the reports; those between were about something else than reading a source.
PUBLISHED = {
    1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26, 27, 29, 30, 31, 33, 34, 35, 37, 38, 39,
    41, 42, 43, 45, 46, 47, 49, 50, 51, 53, 54, 55, 57, 58, 59, 61, 62, 63, 65, 66, 67, 69, 70, 71, 73, 74, 75, 77,
    78, 79, 81, 82, 83, 85, 86, 87, 89, 90, 91, 93, 94, 95, 97, 98, 99,
}
NAMED = re.compile(r"tests? of (that|those) names?")


def tests_named_after(files: dict[str, str]) -> set[int]:
    """The numbers at the beginning of tests' names: B18B42... is of both."""
    found = set()
    for path, text in files.items():
        if path.endswith("_test.cc"):
            for name in re.findall(r"^TEST\w*\(\w+,\s*((?:B\d+)+)[A-Z]", text, re.M):
                found |= {int(number) for number in re.findall(r"B(\d+)", name)}
    return found


def check_readers(files: dict[str, str]) -> list[str]:
    """Finds reports without a row, rows without a report, and tests and files that a row names in vain."""
    if DOCUMENT not in files:
        return []
    tested = tests_named_after(files)
    every_test = "\n".join(text for path, text in files.items() if path.endswith("_test.cc"))
    found, listed = [], []
    for line, row in enumerate(files[DOCUMENT].splitlines(), 1):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not re.fullmatch(r"B\d+( B\d+)*", cells[0]):
            continue
        numbers = [int(number) for number in re.findall(r"\d+", cells[0])]
        listed += numbers
        here = f"{DOCUMENT}:{line}: "
        if len(cells) != 3 or not cells[2]:
            found.append(here + "a row says what went wrong and what is here")
            continue
        if NAMED.search(cells[2]) and not tested & set(numbers):
            found.append(here + f"no test is named after {cells[0]}")
        for room, name in re.findall(r"`(\w+)\.([A-Z]\w+)`", cells[2]):
            if not re.search(rf"\({room},\s*{name}\)", every_test):
                found.append(here + f"there is no test {room}.{name}")
        for path in re.findall(r"`((?:src|tests|cdc|sim)/[\w./]+)`", cells[2]):
            if not any(known == path or known.startswith(path + "/") or known.startswith(f"src/{path}")
                       for known in files):
                found.append(here + f"there is no {path}")
    found += [f"{DOCUMENT}:1: B{number} is missing" for number in sorted(PUBLISHED - set(listed))]
    found += [f"{DOCUMENT}:1: B{number} is there twice" for number in sorted(set(listed))
              if listed.count(number) > 1]
    found += [f"{DOCUMENT}:1: B{number} is no published report" for number in sorted(set(listed) - PUBLISHED)]
    return found


CHECKS = [check_readers]
