"""What idle tables cost: 200 streams of one server in one process, all of them waiting.

`mssql-cdc run` and the simulator are processes of their own. Between them this script passes
everything on and counts the requests in it (after a login they are in clear). Reported are
statements a second, the CPU of `run`, its sessions and memory, and how long one change takes to
be in bronze after the longest pause. The last line is `statements a second: N`. Some 60 s.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "tests" / "harness"))

from simulator import Simulator  # noqa: E402

REQUESTS = (1, 3)  # Packet types of MS-TDS 2.2.3.1.1: a batch, a call.
TLS_RECORDS = range(20, 24)
TICKS = os.sysconf("SC_CLK_TCK")


class Counter:
    """Listens on a port of its own and passes every connection on to `port`."""

    def __init__(self, port: int) -> None:
        self.statements, self.sessions, self.logins = 0, 0, 0
        self.lock = threading.Lock()
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.sessions += 1
                self.logins += 1
            threading.Thread(target=self.upward, args=(client, server), daemon=True).start()
            threading.Thread(target=self.downward, args=(server, client), daemon=True).start()

    def upward(self, client: socket.socket, server: socket.socket) -> None:
        pending = b""
        while data := self.receive(client):
            server.sendall(data)
            pending = self.count(pending + data)
        with self.lock:
            self.sessions -= 1
        server.close()

    def downward(self, server: socket.socket, client: socket.socket) -> None:
        while data := self.receive(server):
            client.sendall(data)

    @staticmethod
    def receive(one: socket.socket) -> bytes:
        try:
            return one.recv(1 << 16)
        except OSError:
            return b""

    def count(self, data: bytes) -> bytes:
        """Counts the messages that end in `data`; returns what is no whole packet yet."""
        while len(data) >= 8:
            is_tls = data[0] in TLS_RECORDS
            size = 5 + int.from_bytes(data[3:5], "big") if is_tls else int.from_bytes(data[2:4], "big")
            if len(data) < size:
                break
            if not is_tls and data[0] in REQUESTS and data[1] & 1:
                with self.lock:
                    self.statements += 1
            data = data[size:]
        return data


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def write_pipeline(folder: pathlib.Path, counter: Counter, simulator: Simulator, tables: int) -> pathlib.Path:
    text = f"Server=127.0.0.1,{counter.port};Database=idle;{simulator.encryption}"
    lines = ["[source]", f"connectionString = {json.dumps(text)}", f'user = "{simulator.user}"',
             'password = { env = "PIPELINE_PASSWORD" }', 'trigger = "continuous"',
             f'facts_table = "{folder}/facts"']
    for number in range(tables):
        lines += ["[[stream]]", f'captureInstance = "dbo_t{number}"', f'target = "{folder}/bronze/t{number}"',
                  f'app_id = "t{number}"', f'checkpoint = "{folder}/checkpoints/t{number}"']
    file = folder / "pipeline.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


class Events:
    """What `run` tells, line by line, with the time each came at."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.lines: list[tuple[float, dict]] = []
        self.news = threading.Condition()
        threading.Thread(target=self.read, args=(process,), daemon=True).start()

    def read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"text": line}
            with self.news:
                self.lines.append((time.monotonic(), event))
                self.news.notify_all()

    def wait(self, suits, seconds: float = 300) -> float:
        """When the first event that suits was told."""
        with self.news:
            def found():
                return next((at for at, event in self.lines if suits(event)), None)
            if not self.news.wait_for(lambda: found() is not None, seconds):
                raise SystemExit(f"it never came; the last of what did: {self.lines[-5:]}")
            return found()

    def idle_streams(self) -> set[str]:
        with self.news:
            return {event.get("stream") for _, event in self.lines if event.get("event") == "idle"}


def create_tables(simulator: Simulator, database: str, count: int, columns: str) -> None:
    """`dbo.t0` to `dbo.t{count - 1}`, each captured, nothing in them."""
    simulator.create(database)
    for number in range(count):
        simulator.run(f"CREATE TABLE dbo.t{number} ({columns})")
        simulator.run(f"EXEC sys.sp_cdc_enable_table N'dbo', N't{number}', @role_name = NULL")
    simulator.capture()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-idle-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder)
        create_tables(simulator, "idle", args.tables, "id int NOT NULL PRIMARY KEY")
        counter = Counter(simulator.port)
        file = write_pipeline(folder, counter, simulator, args.tables)
        begun = time.monotonic()
        process = subprocess.Popen([args.program, "run", file, "--log", "json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, PIPELINE_PASSWORD=simulator.password))
        try:
            events = Events(process)
            while len(events.idle_streams()) < args.tables and process.poll() is None:
                time.sleep(0.2)
            print(f"{args.tables} streams were idle {time.monotonic() - begun:.1f} s after the start, "
                  f"{counter.logins} logins, {counter.statements} statements", flush=True)
            time.sleep(5)  # Until polls are as far apart as they get.
            statements, cpu, begun = counter.statements, cpu_seconds(process.pid), time.monotonic()
            time.sleep(args.seconds)
            seconds = time.monotonic() - begun
            rate = (counter.statements - statements) / seconds
            print(f"idle for {seconds:.0f} s: {counter.statements - statements} statements, "
                  f"{(cpu_seconds(process.pid) - cpu) / seconds * 100:.2f} % of a CPU, {counter.sessions} sessions, "
                  f"{resident_mb(process.pid):.0f} MB resident", flush=True)
            simulator.run("INSERT dbo.t0 VALUES (1)")
            simulator.capture()
            begun = time.monotonic()
            seen = events.wait(lambda event: event.get("stream") == "t0" and event.get("rows") == 1)
            print(f"a change after that was in bronze within {(seen - begun) * 1000:.0f} ms", flush=True)
        finally:
            process.terminate()
            code = process.wait(60)
            simulator.stop()
    print(f"`run` ended with {code}")
    print(f"statements a second: {rate:.2f}")
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
