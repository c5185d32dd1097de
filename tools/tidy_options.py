"""Options: each has a test where it changes what a run does."""

import re

TABLE = "src/cdc/option_table.h"
EFFECTS = "tests/option_effects_test.cc"
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
    "control_table": "tests/silver/check_silver.py",
    "keys": "tests/existing/existing_package.py",
    "granularity": "tests/silver/check_silver.py",
    "silver": "tests/silver/check_silver.py",
    "deletionVectors": "tests/silver/check_silver.py",
    "silverIntervalMs": "src/runtime/stream_config_test.cc",
}


def check_option_effects(files: dict[str, str]) -> list[str]:
    """Finds options that no test shows the effect of."""
    names = re.findall(r'OptionRow\{"(\w+)"', files.get(TABLE, ""))
    rows = set(re.findall(r'^      \{"(\w+)", ', files.get(EFFECTS, ""), re.M))
    found = []
    for name in names:
        if name in rows:
            continue
        place = ELSEWHERE.get(name)
        if place is None:
            found.append(f"{TABLE}:1: option {name} has no row in {EFFECTS}")
        elif name not in files.get(place, ""):
            found.append(f"{place}:1: option {name} should be shown here (tools/tidy_options.py)")
    found += [f"{EFFECTS}:1: {name} is no option" for name in sorted(rows - set(names))]
    return found


CHECKS = [check_option_effects]
