"""Rooms: what may include what, and what files may be called."""

import re

# Single headers that a room may use of a room it does not depend on.
EXCEPTIONS = {
    "sim": {"tds/spec.h"},  # Constants only: the codecs stay apart.
    "pipeline": {"lake/spec.h"},  # Values of the interface, not a lake.
}

FORBIDDEN_NAMES = {"util", "utils", "utility", "common", "helper", "helpers", "misc",
                   "detail", "details"}


def room_table(cmake: str) -> dict[str, tuple[str, set[str]]]:
    """The room() lines of CMakeLists.txt: name -> (folder, the rooms it may use)."""
    table = {}
    for words in re.findall(r"^room\(([^)]*)\)", cmake, re.M):
        name, *rest = words.split()
        folder, depends, key = f"src/{name}", set(), ""
        for word in rest:
            if word in ("DEPENDS", "DIR", "LIBRARIES", "BINARY"):
                key = word
            elif key == "DEPENDS":
                depends.add(word)
            elif key == "DIR":
                folder = word
        table[name] = (folder, depends)
    return table


def includes(text: str):
    """The quoted includes of a file as (line number, path)."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include "([^"]+)"', line)
        if found:
            yield number, found[1]


def check_rooms(files: dict[str, str]) -> list[str]:
    """Finds includes that reach into a room the including room does not depend on."""
    table = room_table(files["CMakeLists.txt"])
    found = []
    for path, text in files.items():
        room = next((name for name, (folder, _) in table.items()
                     if path.startswith(folder + "/")), None)
        if room is None:
            if path.startswith("src/") and path.endswith((".h", ".cc")):
                found.append(f"{path}:1: no room() of CMakeLists.txt holds this file")
            continue
        for number, include in includes(text):
            used = include.split("/")[0]
            if used not in table or used == room or used in table[room][1]:
                continue
            if include not in EXCEPTIONS.get(room, ()):
                found.append(f"{path}:{number}: {room} may not use {include}")
    return found


def check_names(files: dict[str, str]) -> list[str]:
    """Finds files and folders whose name says nothing."""
    return [
        f"{path}:1: a file or folder is not called {part}"
        for path in files
        for part in {word.split(".")[0] for word in path.split("/")}
        if part in FORBIDDEN_NAMES
    ]


CHECKS = [check_rooms, check_names]
