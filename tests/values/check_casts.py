"""Option columns converts values as the existing package does: by Arrow's safe casts.

Every pair of types, value by value, against pyarrow. Where this program differs on purpose
(DIFFERENCES, docs/compatibility.md), a third judge says what is right, and a difference that
no value shows fails. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import math
import pathlib
import random
import re
import struct
import subprocess
import sys

import pyarrow as pa

decimal.getcontext().prec = 100
EPOCH = datetime.datetime(1970, 1, 1)
TYPES = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(), "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us", "UTC"), "STRING": pa.string(), "BINARY": pa.binary(),
    **{f"DECIMAL({p},{s})": pa.decimal128(p, s)
       for p, s in [(5, 0), (6, 6), (7, 2), (10, 2), (12, 2), (15, 4), (19, 4), (21, 2), (38, 0), (38, 10), (38, 38)]},
}
# What Arrow does although values may change: refused when the stream is planned.
LOSSY = [
    ("SMALLINT|INT|BIGINT|FLOAT|DOUBLE", "BOOLEAN"),
    ("DOUBLE", "FLOAT"),
    ("FLOAT|DOUBLE", r"DECIMAL.*"),
    (r"DECIMAL\((19|21|38),\d+\)", "DOUBLE"),
    (r"DECIMAL\((7|10|12|15|19|21|38),\d+\)", "FLOAT"),
    ("TIMESTAMP|TIMESTAMP_NTZ", "DATE"),
]
NUMBERS = ["0", "-0", "1", "-1", "+1", "007", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", " 1", "1 ", "", "-", "+", ".", "1.",
           ".5", "1.5", "-1.50", "1e3", "1E+2", "1.25e-2", "1e", "e1", "1e400", "1e-400", "1e39", "3.4028236e38",
           "0x1F", "0xFFFF", "0x", "1_0", "1,5", "--1", "+-1", "inf", "-inf", "+inf", "Infinity", "nan", "NaN", "nan(1)",
           "1.2.3", "1e 5", "12345678901234567890123456789012345678", "99999999999999999999999999999999999999",
           "100000000000000000000000000000000000000", "0.00000000000000000000000000000000000001", "1e37", "1e38", "0e-5",
           "0e999", "1.0000000000000000000000000000000000000000", "1.230", "99999999.99", "99999999.999", "0.1", "1.1"]
TIMES = ["2026-01-01", "2024-02-29", "2026-02-29", "2026-13-01", "2026-00-10", "2026-01-00", "2026-1-1", "20260101",
         "0001-01-01", "9999-12-31", "0000-01-01", "10000-01-01", " 2026-01-01", "2026-01-01 ", "-001-01-01"]
CLOCKS = ["", " 10", "T10", " 10:20", " 10:20:30", "T10:20:30", "t10:20:30", " 10:20:30.1", " 10:20:30.123456",
          " 10:20:30.1234567", " 10:20:30.", " 24:00:00", " 23:59:60", " 23:60:00", " 1", " 1020", " 00:00:00"]
ZONES = ["", "Z", "z", "+01", "+0130", "+01:30", "-23:59", "+24:00", "+1", "+01:60", "+01:3", " +01:30", " -08:00", " Z"]
TEXTS = [*NUMBERS, "true", "TRUE", "False", "t", "yes", " true", "true\0", "é", "٣", "x" * 300,
         *(d + c + z for d in TIMES for c in CLOCKS for z in ZONES)]
BYTES = [t.encode() for t in [*NUMBERS, "true", "é"]] + [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80"]


def f32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def values(name: str, dice: random.Random) -> list:
    """As the column's buffer holds them."""
    if name == "BOOLEAN":
        return [False, True]
    bits = {"SMALLINT": 16, "INT": 32, "BIGINT": 64}.get(name)
    if bits:
        top = 1 << (bits - 1)
        edges = [e + d for e in (0, 1 << 15, 1 << 24, 1 << 31, 1 << 53, -(1 << 24), -(1 << 53), top, -top) for d in (-2, -1, 0, 1, 2)]
        return [v for v in [*edges, *(dice.randrange(-top, top) >> dice.randrange(bits) for _ in range(40))] if -top <= v < top]
    if name in ("FLOAT", "DOUBLE"):
        real = [0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 1e9, 1e10, 123456789.5, 1e-6, 1e-7, 1.5e-7, 32767.0, 32768.0, -32768.0, 2.0**31, 2.0**53, 2.0**63,
                -(2.0**63), 1e20, 3e38, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 123456789012345.0]
        real += [dice.uniform(-1, 1) * 10.0 ** dice.randrange(-12, 25) for _ in range(60)]
        if name == "DOUBLE":
            return real
        return [f32(v) for v in real if not math.isfinite(v) or abs(v) < 3.4e38]
    if name == "DATE":
        return [0, 1, -1, -719162, 2932896, *(dice.randrange(-719162, 2932897) for _ in range(30))]
    if name.startswith("TIMESTAMP"):
        low, high = -62135596800000000, 253402300799999999
        return [0, 1, -1, low, high, 86399999999, 86400000000, -86400000000, *(dice.randrange(low, high) for _ in range(30))]
    if name == "STRING":
        return TEXTS
    if name == "BINARY":
        return BYTES
    precision, scale = map(int, re.findall(r"\d+", name))
    top = 10**precision
    one = 10**scale
    edges = [0, 1, -1, one, -one, one + 1, 15 * one // 10, top - 1, 1 - top, 32767 * one, 32768 * one, (1 << 31) * one, (1 << 63) * one, 100, 12]
    return [v for v in [*edges, *(dice.randrange(-top, top) // 10 ** dice.randrange(precision) for _ in range(40))] if abs(v) < top]


def array(kind: pa.DataType, value) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([decimal.Decimal(value).scaleb(-kind.scale)], kind)
    if pa.types.is_date(kind):
        return pa.array([value], pa.int32()).view(kind)
    if pa.types.is_timestamp(kind):
        return pa.array([value], pa.int64()).view(kind)
    return pa.array([value], kind)


def shown(kind: pa.DataType, value) -> str:
    """A buffer's value in the words of cast_values."""
    if pa.types.is_boolean(kind):
        return str(int(value))
    if pa.types.is_floating(kind):
        return "nan" if math.isnan(value) else "inf" if value == math.inf else "-inf" if value == -math.inf else value.hex()
    if pa.types.is_string(kind):
        return value.encode().hex()
    if pa.types.is_binary(kind):
        return value.hex()
    return str(value)


def raw(kind: pa.DataType, result: pa.Array):
    if pa.types.is_decimal(kind):
        return int(result[0].as_py().scaleb(kind.scale))
    if pa.types.is_date(kind):
        return result.view(pa.int32())[0].as_py()
    if pa.types.is_timestamp(kind):
        return result.view(pa.int64())[0].as_py()
    return result[0].as_py()


def same(kind: pa.DataType, ours: str, theirs: str) -> bool:
    if ours == theirs or not pa.types.is_floating(kind) or "nan" in ours + theirs or "error" in (ours, theirs):
        return ours == theirs
    return float.fromhex(ours) == float.fromhex(theirs) and ours.startswith("-") == theirs.startswith("-")


def exact_decimal(text: str, kind: pa.DataType) -> str:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return "error"
    value = decimal.Decimal(text).scaleb(kind.scale)
    return str(int(value)) if value == value.to_integral_value() and abs(value) < 10**kind.precision else "error"


def rescaled(value: int, a: pa.DataType, b: pa.DataType) -> str:
    return exact_decimal(str(decimal.Decimal(value).scaleb(-a.scale)), b)


def driver_time(text: str) -> str:
    local, zone = text.rsplit(" ", 1)
    base, _, fraction = local.partition(".")
    at = datetime.datetime.strptime(base, "%Y-%m-%d %H:%M:%S")
    minutes = int(zone[1:3]) * 60 + int(zone[4:])
    us = (at - EPOCH) // datetime.timedelta(microseconds=1) + int((fraction + "000000")[:6])
    return str(us - (minutes if zone[0] == "+" else -minutes) * 60_000_000)


def text_of(value) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


# (name, applies to (from, to, value), what is right there)
DIFFERENCES = [
    ("a text in hexadecimal is no integer",
     lambda a, b, v: pa.types.is_integer(b) and a in ("STRING", "BINARY") and text_of(v).lower().startswith("0x"),
     lambda v, b: "error"),
    ("a text beyond a float's range is refused, not made infinite or zero",
     lambda a, b, v: pa.types.is_floating(b) and a in ("STRING", "BINARY") and text_of(v) in ("1e400", "1e-400", "1e39", "3.4028236e38")
     and not (b == pa.float64() and text_of(v) in ("1e39", "3.4028236e38")),
     lambda v, b: "error"),
    ("there is no year 0",
     lambda a, b, v: a == "STRING" and (pa.types.is_date(b) or pa.types.is_timestamp(b)) and v.startswith("0000-"),
     lambda v, b: "error"),
    ("a text becomes a decimal exactly or not at all, whatever its length",
     lambda a, b, v: a in ("STRING", "BINARY") and pa.types.is_decimal(b),
     lambda v, b: exact_decimal(text_of(v), b)),
    ("a decimal that has no room for the new scale is refused; Arrow's arithmetic wraps around",
     lambda a, b, v: a.startswith("DECIMAL") and pa.types.is_decimal(b),
     lambda v, b: ""),
    ("datetimeoffset as drivers write it, value by value",
     lambda a, b, v: a == "STRING" and b == pa.timestamp("us", "UTC") and
     re.fullmatch(r"(?!0000)\d{4}-(0[1-9]|1[0-2])-\d\d ([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,7})? [+-]([01]\d|2[0-3]):[0-5]\d", v) is not None
     and not v.startswith(("2026-02-29", "2026-01-00", "2026-00")),
     lambda v, b: driver_time(v)),
]


def decimal_as_float(value: int, a: pa.DataType, b: pa.DataType) -> str:
    """The nearest value; Arrow's own is an approximation."""
    exact = decimal.Decimal(value).scaleb(-a.scale)
    return shown(b, float(exact) if b == pa.float64() else f32(float(exact)))


def expected(a: str, b: pa.DataType, value, used: set[str]) -> str:
    kind = TYPES[a]
    if pa.types.is_decimal(kind) and pa.types.is_floating(b):
        return decimal_as_float(value, kind, b)
    try:
        theirs = shown(b, raw(b, array(kind, value).cast(b)))
    except (pa.ArrowInvalid, ValueError, OverflowError):
        theirs = "error"
    for name, applies, right in DIFFERENCES:
        if applies(a, b, value):
            answer = right(value, b) or rescaled(value, kind, b)
            if answer != theirs:
                used.add(name)
            return answer
    return theirs


def fit(a: str, b: str) -> str:
    if a == b:
        return "same"
    try:
        pa.array([None], TYPES[a]).cast(TYPES[b])
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return "never"
    return "lossy" if any(re.fullmatch(x, a) and re.fullmatch(y, b) for x, y in LOSSY) else "value"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="build/release/tests/cast_values")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    cases = [(a, b, v) for a in TYPES for vs in [values(a, dice)] for b in TYPES for v in vs]
    lines = "".join(f"{a}\t{b}\t{shown(TYPES[a], v)}\n" for a, b, v in cases)
    answers = subprocess.run([args.program.resolve()], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    if len(answers) != len(cases):
        raise SystemExit(f"{len(answers)} answers to {len(cases)} casts")
    passed = failed = 0
    used: set[str] = set()
    for (a, b, value), ours in zip(cases, answers):
        kind = fit(a, b)
        if kind == "value":
            right = expected(a, TYPES[b], value, used)
        else:
            right = shown(TYPES[a], value) if kind == "same" else kind
        if same(TYPES[b], ours, right):
            passed += 1
        else:
            failed += 1
            if failed <= 40:
                print(f"FAILED {value!r}: {a} to {b} is {ours}, not {right}")
    for name, *_ in DIFFERENCES:
        if name not in used:
            failed += 1
            print(f"FAILED the difference is not there: {name}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
