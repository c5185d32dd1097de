"""Options: each has a test where it changes what a run does."""

import re

TABLE = "src/cdc/option_table.h"
EFFECTS = ("tests/option_effects_test.cc", "tests/silver_effects_test.cc")
# What a run in one process cannot show, and where it is shown.
ELSEWHERE = {
    "connectionString": "src/runtime/connection_test.cc",
    "user": "tests/faults/faults.py",
    "password": "tests/faults/faults.py",
    "accessToken": "tests/tokens/check_tokens.py",
    "tokenProvider": "tests/tokens/check_tokens.py",
    "connectTimeout": "tests/hostile/hostile.py",
    "backend": "tests/fake/check_fake.py",
    "fakePath": "tests/fake/check_fake.py",
    "captureInstances": "tests/options/check_options.py",
    "changedColumns": "tests/options/check_options.py",
    "unchangedLob": "tests/options/check_options.py",
}


def check_option_effects(files: dict[str, str]) -> list[str]:
    """Finds options that no test shows the effect of."""
    names = re.findall(r'OptionRow\{"(\w+)"', files.get(TABLE, ""))
    rows = {name: path for path in EFFECTS
            for name in re.findall(r'^      \{"(\w+)", ', files.get(path, ""), re.M)}
    found = []
    for name in names:
        if name in rows:
            continue
        place = ELSEWHERE.get(name)
        if place is None:
            found.append(f"{TABLE}:1: option {name} has no row in {' or '.join(EFFECTS)}")
        elif not re.search(rf'\b{name}"?\s*[=:]|"{name}"', files.get(place, "")):
            found.append(f"{place}:1: option {name} should be shown here (tools/tidy_options.py)")
    found += [f"{path}:1: {name} is no option" for name, path in sorted(rows.items()) if name not in names]
    return found


CHECKS = [check_option_effects]
