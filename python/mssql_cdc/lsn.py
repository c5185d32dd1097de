"""Log sequence numbers as text: 0x and 20 upper-case hexadecimal digits, whose order is theirs."""

from __future__ import annotations

from mssql_cdc import _core
from mssql_cdc.client import Lsn

LSN_BYTES = 10
ZERO_LSN = Lsn("0x" + "0" * (2 * LSN_BYTES))


def normalize(value: str) -> Lsn:
    """The one spelling of an LSN; ValueError for a text that is none."""
    return Lsn(_core.normalize_lsn(value))


def to_int(lsn: str) -> int:
    """The number whose big-endian bytes the LSN is."""
    return int(normalize(lsn), 16)


def from_int(value: int) -> Lsn:
    """The LSN of that number; ValueError outside of ten bytes."""
    if not 0 <= value < 1 << (8 * LSN_BYTES):
        raise ValueError(f"an LSN has {LSN_BYTES} bytes; {value} does not fit")
    return Lsn(f"0x{value:020X}")


__all__ = ["LSN_BYTES", "Lsn", "ZERO_LSN", "from_int", "normalize", "to_int"]
