"""Checks the properties of the tree that no compiler checks.

Prints one `path:line: what is wrong` per finding and exits 1 if there was any. Every check
is a function from the tree's files (path -> text) to findings, so that its test is a
dictionary. `--shrink` cuts the ratchet files to what the tree needs; `--accept` writes down
all that the tree has, also what grew: a decision that the diff shows.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tidy_documents
import tidy_options
import tidy_ratchets
import tidy_readers
import tidy_rooms
import tidy_text

ROOT = pathlib.Path(__file__).resolve().parent.parent

CHECKS = [
    *tidy_rooms.CHECKS,
    *tidy_text.CHECKS,
    *tidy_documents.CHECKS,
    *tidy_options.CHECKS,
    *tidy_readers.CHECKS,
    *tidy_ratchets.CHECKS,
]


def read_tree(root: pathlib.Path) -> dict[str, str]:
    """Every text file that is, or could be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, check=True,
    ).stdout.decode().split("\0")
    files = {}
    for name in sorted(set(filter(None, listed))):
        path = root / name
        if not path.is_file():
            continue  # Deleted in the work tree, or a link to nowhere.
        content = path.read_bytes()
        if b"\0" not in content:
            files[name] = content.decode(errors="replace")
    return files


def main(words: list[str]) -> int:
    files = read_tree(ROOT)
    rewrite = {"--shrink": tidy_ratchets.shrunk, "--accept": tidy_ratchets.accepted}
    for word in words:
        for name, text in rewrite[word](files).items():
            (ROOT / name).write_text(text)
            files[name] = text
    found = [finding for check in CHECKS for finding in check(files)]
    print(*found, sep="\n") if found else print(f"tidy: {len(files)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
