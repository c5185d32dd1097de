"""Writes tests/corpus/reply anew: one fuzz input per wire case of tests/wire."""

import pathlib
import re

import dev_paths

SIZE_BYTES_MAX = 2048


def wire_of(case: pathlib.Path) -> bytes:
    """The bytes of a .tdscase."""
    lines, inside = [], False
    for line in case.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            inside = line.strip() == "wire"
        elif inside:
            lines.append(line.split("#")[0])
    text = re.sub(r"\(([0-9A-Fa-f ]+)\)\*(\d+)",
                  lambda match: match[1] * int(match[2]), " ".join(lines))
    return bytes.fromhex(text)


def main() -> None:
    """Each input begins with eight bytes that choose cuts and limits (reply_fuzz.cc)."""
    corpus = dev_paths.ROOT / "tests/corpus/reply"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, case in enumerate(sorted((dev_paths.ROOT / "tests/wire").glob("*.tdscase"))):
        wire = wire_of(case)
        if len(wire) <= SIZE_BYTES_MAX:
            head = bytes([index, 0, 0, 0, index, 15, 1 + index % 200, 0])
            (corpus / case.stem).write_bytes(head + wire)


if __name__ == "__main__":
    main()
