"""Limits that hold for everything new, with a list of what is still over them.

Each ratchet is a file in tools/ratchets of lines `KEY VALUE`. An entry that is no longer
needed, or larger than needed, is a finding too (`./dev tidy --shrink` takes it out), so
that the lists only get shorter.
"""

import ast
import re

import tidy_documents
import tidy_text

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 700
FOLDER = "tools/ratchets"


def long_functions(files: dict[str, str]) -> dict[str, int]:
    """`path:function` -> lines, of the functions over the limit."""
    sizes: dict[str, int] = {}
    for path, text in files.items():
        if path.endswith((".cc", ".h")):
            measured = cpp_functions(text)
        elif path.endswith(".py"):
            measured = python_functions(text)
        else:
            continue
        for name, size in measured:
            if size > FUNCTION_LINES_MAX:
                key = f"{path}:{name}"
                sizes[key] = max(size, sizes.get(key, 0))
    return sizes


def cpp_functions(text: str):
    """(name, lines) of each function of clang-formatted C++.

    The formatter puts a definition's first line and its closing brace in the same column
    (0, or 2 inside a class), so the brace's column finds the end. A definition is a line
    that opens a parenthesis and leads, without a semicolon between, to a line that ends
    with an opening brace.
    """
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        head = re.match(r"( {0,4})(?![ /#}])(?!(?:namespace|class|struct|enum|union|using|"
                        r"typedef|public|private|protected|return|if|for|while|switch|"
                        r"else|case)\b).*?([\w~:]+)\(", lines[index])
        end = body_end(lines, index, head[1]) if head else None
        if end is None:
            index += 1
            continue
        name = head[2]
        argument = re.match(r"\s*TEST\w*\((\w+), (\w+)", lines[index])
        yield (f"{argument[1]}.{argument[2]}" if argument else name), end - index + 1
        index = end + 1


def body_end(lines: list[str], first: int, indent: str) -> int | None:
    """The line with the closing brace of the definition that begins at `first`, or None."""
    for opening in range(first, min(first + 12, len(lines))):
        line = lines[opening].split("//")[0].rstrip()
        if line.endswith("{"):
            break
        if line.endswith((";", "}")) or not line:
            return None
    else:
        return None
    for closing in range(opening + 1, len(lines)):
        if re.match(rf"{indent}}}", lines[closing]):
            return closing
    return None


def python_functions(text: str):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def long_files(files: dict[str, str]) -> dict[str, int]:
    return {
        path: text.count("\n")
        for path, text in files.items()
        if path.endswith((".cc", ".h", ".py", ".rs", ".go"))
        and text.count("\n") > FILE_LINES_MAX
    }


def untested_errors(files: dict[str, str]) -> dict[str, int]:
    """Catalogue names that occur in no test, each with its number."""
    tests = "\n".join(
        text for path, text in files.items()
        if re.search(r"_test\.(cc|py|rs)$", path)
        or path.startswith("tests/") and not path.startswith("tests/corpus/")
    )
    return {
        name: int(number)
        for number, name in tidy_documents.catalogue(files)
        if not re.search(rf"\bk?{name}\b|\bMC{number}\b", tests)
    }


RATCHETS = {
    "banned_calls.txt": (tidy_text.banned_calls, "a banned call"),
    "long_functions.txt": (long_functions, f"over {FUNCTION_LINES_MAX} lines: split it"),
    "long_files.txt": (long_files, f"over {FILE_LINES_MAX} lines: find the second concept"),
    "untested_errors.txt": (untested_errors, "is provoked by no test"),
}


def allowed(text: str) -> dict[str, int]:
    entries = (line.rsplit(" ", 1) for line in text.splitlines() if line.strip())
    return {key: int(value) for key, value in entries}


def check_ratchets(files: dict[str, str]) -> list[str]:
    """Finds what is over a limit and not listed, and entries that say more than is so."""
    found = []
    for name, (measure, complaint) in RATCHETS.items():
        path = f"{FOLDER}/{name}"
        listed, now = allowed(files.get(path, "")), measure(files)
        for key, value in sorted(now.items()):
            if value > listed.get(key, -1):
                where = key if ":" in key or "." not in key else f"{key}:1"
                found.append(f"{where}: {complaint} ({value})")
        for key, value in sorted(listed.items()):
            if now.get(key, -1) < value:
                found.append(f"{path}:1: {key} {value} is more than needed: "
                             "./dev tidy --shrink")
    return found


def shrunk(files: dict[str, str]) -> dict[str, str]:
    """The ratchet files with every entry that is too large cut or taken out."""
    made = {}
    for name, (measure, _) in RATCHETS.items():
        path = f"{FOLDER}/{name}"
        listed, now = allowed(files.get(path, "")), measure(files)
        kept = {key: min(value, now[key]) for key, value in listed.items() if key in now}
        made[path] = "".join(f"{key} {value}\n" for key, value in sorted(kept.items()))
    return made


def accepted(files: dict[str, str]) -> dict[str, str]:
    """The ratchet files with everything the tree has now: a decision that the diff shows."""
    return {
        f"{FOLDER}/{name}": "".join(f"{key} {value}\n"
                                    for key, value in sorted(measure(files).items()))
        for name, (measure, _) in RATCHETS.items()
    }


CHECKS = [check_ratchets]
