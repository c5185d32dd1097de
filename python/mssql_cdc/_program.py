"""The console script `mssql-cdc`: hands the process over to the binary that came with it."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "mssql-cdc"
    os.execv(program, ["mssql-cdc", *sys.argv[1:]])
