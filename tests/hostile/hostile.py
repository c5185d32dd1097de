"""A server that lies, floods, stops or says nothing: the client must end with an error of the catalogue.

Each case is a small server made of literal bytes (no code of ours, no codec: MS-TDS by hand). The
real binary runs `check` against it; the case passes if it ends within 5 s and 64 MiB of resident
memory, with an error code of the catalogue that is not InternalError, and not by a signal.
The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_S = 5.0
LIMIT_KIB = 64 * 1024
PASSWORD = "Hostile-canary-3"

REPLY, PRELOGIN = 0x04, 0x12


def packet(payload: bytes, kind: int = REPLY, eom: bool = True, length: int | None = None) -> bytes:
    size = 8 + len(payload) if length is None else length
    return struct.pack(">BBHHBB", kind, 1 if eom else 0, size & 0xFFFF, 51, 1, 0) + payload


def message(payload: bytes, size: int = 4096) -> bytes:
    room = size - 8
    parts = [payload[i : i + room] for i in range(0, len(payload), room)] or [b""]
    return b"".join(packet(p, eom=i == len(parts) - 1) for i, p in enumerate(parts))


def prelogin(encryption: int = 2) -> bytes:
    options = [(0, bytes([16, 0, 16, 89, 0, 0])), (1, bytes([encryption])), (2, b"\0"), (3, b""), (4, b"\0")]
    offset = 5 * len(options) + 1
    table, data = b"", b""
    for kind, value in options:
        table += struct.pack(">BHH", kind, offset + len(data), len(value))
        data += value
    return packet(table + b"\xff" + data)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def b_varchar(text: str) -> bytes:
    return bytes([len(text)]) + utf16(text)


def us_varchar(text: str) -> bytes:
    return struct.pack("<H", len(text)) + utf16(text)


def token(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<H", len(body)) + body


def error(number: int, text: str, severity: int = 16) -> bytes:
    body = struct.pack("<iBB", number, 1, severity) + us_varchar(text) + b_varchar("S") + b_varchar("") + struct.pack("<I", 1)
    return token(0xAA, body)


def done(status: int = 0, count: int = 0, kind: int = 0xFD) -> bytes:
    return bytes([kind]) + struct.pack("<HHQ", status, 0xC1, count)


LOGIN_ACK = token(0xAD, bytes([1, 0x74, 0, 0, 4]) + b_varchar("Microsoft SQL Server") + bytes([16, 0, 16, 89]))
COLLATION = token(0xE3, bytes([7, 5, 0x09, 0x04, 0xD0, 0x00, 0x34, 0]))
PACKET_SIZE = token(0xE3, bytes([4]) + b_varchar("4096") + b_varchar("4096"))
LOGIN = LOGIN_ACK + COLLATION + PACKET_SIZE + done()


def column(type_info: bytes, name: str = "c") -> bytes:
    return struct.pack("<IH", 0, 1) + type_info + b_varchar(name)


def metadata(*columns: bytes) -> bytes:
    return b"\x81" + struct.pack("<H", len(columns)) + b"".join(columns)


NVARCHAR_100 = b"\xe7" + struct.pack("<H", 200) + bytes([0x09, 0x04, 0xD0, 0x00, 0x34])
NVARCHAR_MAX = b"\xe7\xff\xff" + bytes([0x09, 0x04, 0xD0, 0x00, 0x34])
INT = b"\x26\x04"


class Gone(Exception):
    """The client closed the connection: what every case hopes for."""


class Talk:
    """One connection of the client."""

    def __init__(self, connection: socket.socket, port: int) -> None:
        self.connection = connection
        self.port = port
        connection.settimeout(LIMIT_S * 4)

    def send(self, data: bytes) -> None:
        try:
            self.connection.sendall(data)
        except OSError:
            raise Gone from None

    def request(self) -> bytes:
        """Reads one whole message."""
        payload = b""
        while True:
            header = self._exactly(8)
            length = struct.unpack(">H", header[2:4])[0]
            payload += self._exactly(length - 8)
            if header[1] & 1:
                return payload

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = self.connection.recv(size - len(data))
            except OSError:
                raise Gone from None
            if not part:
                raise Gone
            data += part
        return data

    def wait_until_gone(self) -> None:
        self._exactly(1 << 30)

    def flood(self, data: bytes) -> None:
        while True:
            self.send(data)

    def log_in(self) -> None:
        self.request()
        self.send(prelogin())
        self.request()
        self.send(message(LOGIN))


def before_prelogin(data: bytes, then_close: bool = True):
    def go(talk: Talk) -> None:
        talk.request()
        talk.send(data)
        if not then_close:
            talk.wait_until_gone()

    return go


def at_login(data: bytes, then_close: bool = True):
    def go(talk: Talk) -> None:
        talk.request()
        talk.send(prelogin())
        talk.request()
        talk.send(data)
        if not then_close:
            talk.wait_until_gone()

    return go


def at_query(data: bytes, then_close: bool = True):
    def go(talk: Talk) -> None:
        talk.log_in()
        talk.request()
        talk.send(data)
        if not then_close:
            talk.wait_until_gone()

    return go


def flood_at(phase, start: bytes, again: bytes):
    """In the phase of before_prelogin, at_login or at_query: `start`, then `again` for ever."""

    def go(talk: Talk) -> None:
        if phase is at_query:
            talk.log_in()
        elif phase is at_login:
            talk.request()
            talk.send(prelogin())
        talk.request()
        talk.send(start)
        talk.flood(again)

    return go


def silence(talk: Talk) -> None:
    talk.wait_until_gone()


def silence_after_prelogin(talk: Talk) -> None:
    talk.request()
    talk.send(prelogin())
    talk.wait_until_gone()


def silence_after_login7(talk: Talk) -> None:
    talk.request()
    talk.send(prelogin())
    talk.request()
    talk.wait_until_gone()


def drip(talk: Talk) -> None:
    """One byte a moment: the whole login must still meet its limit."""
    talk.request()
    data = prelogin() + packet(b"")
    for i in range(len(data)):
        talk.send(data[i : i + 1])
        time.sleep(0.25)
    talk.wait_until_gone()


def close_at_once(talk: Talk) -> None:
    return None


def route_to_itself(talk: Talk) -> None:
    target = struct.pack("<BH", 0, talk.port) + us_varchar("127.0.0.1")
    body = b"\x14" + struct.pack("<H", len(target)) + target + b"\0\0"
    talk.request()
    talk.send(prelogin())
    talk.request()
    talk.send(message(LOGIN_ACK + token(0xE3, body) + done()))


RETURN_VALUE = b"\xac\x00\x00\x00\x01" + struct.pack("<IH", 0, 0)
FULL = bytes(4088)

CASES = {
    "closes at once": close_at_once,
    "says nothing": silence,
    "says nothing after PRELOGIN": silence_after_prelogin,
    "says nothing after LOGIN7": silence_after_login7,
    "one byte at a time": drip,
    "PRELOGIN of another packet type": before_prelogin(packet(b"\xff", kind=0x7F)),
    "PRELOGIN in a packet of length 0": before_prelogin(packet(b"", length=0) + b"\0" * 64, False),
    "PRELOGIN in a packet of length 7": before_prelogin(packet(b"", length=7) + b"\0" * 64, False),
    "PRELOGIN empty": before_prelogin(packet(b""), False),
    "PRELOGIN without a terminator": before_prelogin(packet(b"\x00\x00\x06\x00\x06"), False),
    "PRELOGIN option past the end": before_prelogin(packet(b"\x01\xff\xf0\xff\xf0\xff"), False),
    "PRELOGIN with only a terminator": before_prelogin(packet(b"\xff"), False),
    "PRELOGIN that never ends": flood_at(before_prelogin, b"", packet(FULL, eom=False)),
    "PRELOGIN in empty packets for ever": flood_at(before_prelogin, b"", packet(b"", eom=False) * 512),
    "garbage for PRELOGIN": before_prelogin(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "login reply cut in a token": at_login(message(LOGIN)[:40]),
    "login reply without LOGINACK": at_login(message(done())),
    "login reply empty": at_login(packet(b"")),
    "an unknown token at login": at_login(message(b"\x42" + b"\0" * 64)),
    "ENVCHANGE of length 0": at_login(message(token(0xE3, b"") + done())),
    "ENVCHANGE packet size 99999999": at_login(message(token(0xE3, bytes([4]) + b_varchar("99999999") + b_varchar("4096")) + LOGIN_ACK + done()), False),
    "ERROR shorter than its fixed part": at_login(message(token(0xAA, b"\0\0\x08"))),
    "ERROR whose text runs past it": at_login(message(token(0xAA, struct.pack("<iBB", 1, 1, 16) + b"\xff\xff"))),
    "FEDAUTHINFO whose length wraps": at_login(message(b"\xee\xfb\xff\xff\xff" + b"\0" * 16), False),
    "FEATUREEXTACK of 4 GB": at_login(message(b"\xae\x0a\xff\xff\xff\xff" + b"\0" * 64), False),
    "SESSIONSTATE of 4 GB": at_login(message(b"\xe4\xff\xff\xff\xff" + b"\0" * 64), False),
    "INFO for ever at login": flood_at(at_login, b"", packet(token(0xAB, error(1, "x" * 100)[3:]) * 8, eom=False)),
    "login reply in empty packets for ever": flood_at(at_login, b"", packet(b"", eom=False) * 512),
    "packet longer than agreed at login": at_login(packet(b"", length=0xFFFF) + b"\0" * 0xFFFF, False),
    "a change of packet type inside a message": at_login(packet(LOGIN[:20], eom=False) + packet(LOGIN[20:], kind=PRELOGIN), False),
    "a route to itself": route_to_itself,
    "login refused with terminal escapes": at_login(message(error(18456, "\x1b[2J\x07Login failed", 14) + done(2))),
    "65534 columns": at_query(message(b"\x81\xfe\xff" + column(INT) * 64), False),
    "a column of an unknown type": at_query(message(metadata(column(b"\x99")))),
    "a column cut in its name": at_query(message(b"\x81\x01\x00" + struct.pack("<IH", 0, 1) + INT + b"\xff\x61")),
    "ROW before COLMETADATA": at_query(message(b"\xd1\x04\x01\x00\x00\x00" + done())),
    "a value longer than its column": at_query(message(metadata(column(NVARCHAR_100)) + b"\xd1\x00\x80" + b"a\0" * 16000), False),
    "an int of 9 bytes": at_query(message(metadata(column(INT)) + b"\xd1\x09" + b"\0" * 64), False),
    "a decimal of precision 99": at_query(message(metadata(column(b"\x6a\x11\x63\x00")) + b"\xd1\x11" + b"\0" * 64), False),
    "a time of scale 200": at_query(message(metadata(column(b"\x29\xc8")) + b"\xd1\x05" + b"\0" * 64), False),
    "a PLP value of 2^63 bytes": at_query(message(metadata(column(NVARCHAR_MAX)) + b"\xd1" + struct.pack("<Q", 1 << 63) + b"\0" * 64), False),
    "a PLP value that never ends": flood_at(at_query, packet(metadata(column(NVARCHAR_MAX)) + b"\xd1" + struct.pack("<Q", 0xFFFFFFFFFFFFFFFE), eom=False), packet(struct.pack("<I", 4000) + b"a\0" * 2000, eom=False) * 16),
    "a PLP chunk of 4 GB": flood_at(at_query, packet(metadata(column(NVARCHAR_MAX)) + b"\xd1" + struct.pack("<QI", 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFF), eom=False), packet(FULL, eom=False) * 16),
    "rows for ever": flood_at(at_query, packet(metadata(column(INT)), eom=False), packet(b"\xd1\x04\x01\x00\x00\x00" * 600, eom=False) * 16),
    "DONE with more to come for ever": flood_at(at_query, b"", packet(done(1, kind=0xFF) * 300, eom=False) * 16),
    "INFO for ever": flood_at(at_query, b"", packet(token(0xAB, error(1, "x" * 100)[3:]) * 8, eom=False) * 16),
    "result sets for ever": flood_at(at_query, b"", packet((metadata(column(INT)) + done(0x11)) * 100, eom=False) * 16),
    "metadata for ever": flood_at(at_query, b"", packet(metadata(column(INT)) * 200, eom=False) * 16),
    "reply in empty packets for ever": flood_at(at_query, b"", packet(b"", eom=False) * 512),
    "a reply that is cut in a row": at_query(packet(metadata(column(NVARCHAR_100)) + b"\xd1\x20\x00abc", eom=False)),
    "a message that ends in a row": at_query(message(metadata(column(NVARCHAR_100)) + b"\xd1\x20\x00abc")),
    "an unknown token in a reply": at_query(message(b"\x42" + b"\0" * 64)),
    "ALTMETADATA": at_query(message(b"\x88" + b"\0" * 64)),
    "RETURNVALUE of an unknown type": at_query(message(RETURN_VALUE + b"\x99" + b"\0" * 64)),
    "COLMETADATA of nothing that was asked for": at_query(message(metadata(column(INT, "x")) + b"\xd1\x04\x01\x00\x00\x00" + done(0x10, 1))),
    "DONE with the error bit and no ERROR": at_query(message(done(2))),
    "an error after rows": at_query(message(metadata(column(INT)) + b"\xd1\x04\x01\x00\x00\x00" + error(50000, "later") + done(2))),
}


class Liar:
    """Serves one case on every connection until closed."""

    def __init__(self, case) -> None:
        self.case = case
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            try:
                self.case(Talk(connection, self.port))
            except Gone:
                pass

    def close(self) -> None:
        self.listener.close()


def run(program: pathlib.Path, folder: pathlib.Path, name: str, encrypt: str = "optional") -> str | None:
    """Runs one case; returns what is wrong, or None."""
    liar = Liar(CASES[name])
    file = folder / "pipeline.toml"
    file.write_text(
        f"""[source]
connectionString = "Server=127.0.0.1,{liar.port};Database=shop;Encrypt={encrypt}"
user = "reader"
password = {{ env = "HOSTILE_PASSWORD" }}
connectTimeout = 2
[[stream]]
captureInstance = "dbo_orders"
target = "{folder}/bronze"
app_id = "hostile"
checkpoint = "{folder}/checkpoint"
retries = 0
"""
    )
    output = folder / "output"
    begun = time.monotonic()
    with output.open("wb") as into:
        process = subprocess.Popen(
            [program, "check", file],
            stdout=into,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, HOSTILE_PASSWORD=PASSWORD),
        )
        watchdog = threading.Timer(LIMIT_S * 3, process.kill)
        watchdog.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watchdog.cancel()
    took = time.monotonic() - begun
    liar.close()
    text = output.read_text(errors="replace")
    found = re.search(r"MC(\d{4}) \w+", text)
    wrong = []
    if process.returncode < 0:
        wrong.append(f"ended by signal {-process.returncode}")
    elif process.returncode not in (65, 70, 75, 78):
        wrong.append(f"exit code {process.returncode}")
    if not found or found[1] == "9002":
        wrong.append("no error of the catalogue")
    if took > LIMIT_S:
        wrong.append(f"took {took:.1f} s")
    if usage.ru_maxrss > LIMIT_KIB:
        wrong.append(f"{usage.ru_maxrss // 1024} MiB resident")
    if "\x1b" in text or "\x07" in text:
        wrong.append("control characters of the server in the output")
    if PASSWORD in text:
        wrong.append("the password in the output")
    shown = found[0] if found else "-"
    print(f"  {name}: {shown}, {took:.2f} s, {usage.ru_maxrss // 1024} MiB", flush=True)
    return "; ".join(wrong) + "\n    " + text.replace("\n", "\n    ") if wrong else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--only", help="one case by name")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failed = 0
    names = [args.only] if args.only else list(CASES)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="mssql-cdc-hostile-") as folder:
            wrong = run(args.program, pathlib.Path(folder), name)
        if wrong:
            failed += 1
            print(f"FAILED {name}: {wrong}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
