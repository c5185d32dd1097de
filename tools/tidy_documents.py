"""Holds the documents to the code they speak about."""

import posixpath
import re

CATALOGUE = "src/base/error.h"
DOCUMENT = "docs/errors.md"
OPTIONS = "src/cdc/option_table.h"
OPTIONS_DOCUMENT = "docs/options.md"


def catalogue(files: dict[str, str]) -> list[tuple[str, str]]:
    """The error list as (number, name)."""
    return re.findall(r"\bROW\((\d+), (\w+)", files[CATALOGUE])


def check_error_document(files: dict[str, str]) -> list[str]:
    """docs/errors.md has each code once, with cause and cure, and no code too many."""
    listed = [f"MC{number} {name}" for number, name in catalogue(files)]
    text = files.get(DOCUMENT, "")
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    documented = [section.splitlines()[0].strip() for section in sections]
    documented = [title for title in documented if title.startswith("MC")]
    found = [
        f"{DOCUMENT}:1: {entry} is in only one of catalogue and document"
        for entry in sorted(set(listed) ^ set(documented))
    ]
    found += [f"{DOCUMENT}:1: {entry} is there twice"
              for entry in sorted({one for one in documented if documented.count(one) > 1})]
    for section in sections:
        title = section.splitlines()[0].strip()
        for word in ("**Cause.**", "**Cure.**"):
            if title.startswith("MC") and word not in section:
                found.append(f"{DOCUMENT}:1: {title} has no {word}")
    return found


def check_links(files: dict[str, str]) -> list[str]:
    """Relative links between the documents lead to a file."""
    found = []
    for path, text in files.items():
        if not path.endswith(".md"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", line):
                there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
                if there not in files and not any(one.startswith(there + "/")
                                                  for one in files):
                    found.append(f"{path}:{number}: {target} is not there")
    return found


def check_options_document(files: dict[str, str]) -> list[str]:
    """docs/options.md lists the options of the table in the code, with its words."""
    rows = re.findall(
        r'OptionRow\{"([^"]+)",\s*OptionGroup::k\w+,\s*"([^"]*)",\s*"((?:[^"\\]|\\.)*)"\}',
        files.get(OPTIONS, ""))
    listed = {name: (name, default, choices.replace('\\"', '"'))
              for name, default, choices in rows}
    text = files.get(OPTIONS_DOCUMENT, "")
    documented = {}
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = re.match(r"\| `([^`]+)` \| ([^|]*) \| ([^|]*) \| [^|]+ \|$", line)
        if not cells:
            continue
        name = cells[1]
        if name in documented:
            found.append(f"{OPTIONS_DOCUMENT}:{number}: {name} is there twice")
        documented[name] = cells.groups()
        if name in listed and documented[name] != listed[name]:
            found.append(f"{OPTIONS_DOCUMENT}:{number}: {name}: the code says "
                         f"{listed[name][1:]}")
    found += [f"{OPTIONS_DOCUMENT}:1: {name} is in only one of code and document"
              for name in sorted(set(listed) ^ set(documented))]
    if len(listed) != files.get(OPTIONS, "").count("OptionRow{"):
        found.append(f"{OPTIONS}:1: an option row has another form than the check reads")
    return found


CHECKS = [check_error_document, check_options_document, check_links]
