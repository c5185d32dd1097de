"""Holds the documents to the code they speak about."""

import posixpath
import re

CATALOGUE = "src/base/error.h"
DOCUMENT = "docs/errors.md"


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


CHECKS = [check_error_document, check_links]
