"""`./dev bench read`: client CPU per cell, ours beside the peers, against one replay server.

Whole processes are measured (user + system time of each, start-up included), the server
pinned to one core and the client to another, rounds interleaved, the best of a client's
rounds counted. Where the system allows it they run at a real-time priority, so that other
programs neither interrupt them nor empty their caches. Every client runs with its own
default packet size. What no ratio is printed of is measured once. A separate run of each
client first compares a checksum of all cells.
Prints a line per shape and peer, then `rust ratio: N`, `tls ratio: N`, `worst ratio: N`:
the smallest ratio over the shapes against Microsoft's Rust core in clear, against
Microsoft's ODBC driver with TLS, and against Microsoft's ODBC driver in clear.
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# Rows a measured run reads: about 30 million cells, so that start-up counts little even
# for the peers (the start-up line says how much).
SHAPES = {"W1": (8, 3_750_000), "W2": (16, 1_875_000), "W3": (89, 340_000),
          "W3u": (90, 340_000)}
CHECKSUM_ROW_COUNT = 20_000  # The server repeats itself behind them.
OURS, MICROSOFT, RUST, ARROW_ODBC = "ours", "mssql-python", "mssql-python-rust", "arrow-odbc"
CLIENTS = [OURS, MICROSOFT, RUST, ARROW_ODBC]
# Mode -> (which server, what the connection string says).
MODES = {"clear": ("clear", "Encrypt=no;TrustServerCertificate=yes"),
         "login": ("encrypted", "Encrypt=no;TrustServerCertificate=yes"),
         "tls": ("encrypted", "Encrypt=yes;TrustServerCertificate=yes"),
         "strict": ("encrypted", "Encrypt=strict;ServerCertificate={certificate}")}
DEFAULT_MODES = "clear,tls"
# The ratios that are printed: name, mode, peer.
RATIOS = [("rust", "clear", RUST), ("tls", "tls", MICROSOFT), ("worst", "clear", MICROSOFT)]
SERVER_CORE, CLIENT_CORE = "0", "1"
RUN_SECONDS_MAX = 120
PRIORITY = 5


@dataclasses.dataclass(frozen=True)
class Run:
    cpu_seconds: float
    system_part: float  # Of cpu_seconds: spent in the kernel, most of it receiving.
    peak_mb: float
    output: dict[str, str]


def driver_path() -> pathlib.Path:
    """The ODBC driver that Microsoft's package brings."""
    import mssql_python_odbc

    folder = pathlib.Path(mssql_python_odbc.__file__).parent
    found = sorted(folder.glob("libs/linux/debian_ubuntu/x86_64/lib/libmsodbcsql*"))
    if not found:
        raise SystemExit("mssql-python-odbc has no driver for this machine")
    return found[0]


def take_priority() -> None:
    """In a child, before its program: nothing of this machine but the kernel goes first."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        pass  # Measured all the same, with more noise.


class Bench:
    def __init__(self, build: pathlib.Path, folder: pathlib.Path) -> None:
        self.build = build
        self.odbc = folder
        (folder / "odbcinst.ini").write_text(
            f"[ODBC Driver 18 for SQL Server]\nDriver={driver_path()}\n")
        self.servers: dict[str, subprocess.Popen] = {}
        self.ports: dict[str, str] = {}
        self.certificate = folder / "server.pem"
        for kind, option in (("clear", ["--no-encryption"]),
                             ("encrypted", ["--encryption", self.certificate])):
            server = subprocess.Popen(
                ["taskset", "-c", SERVER_CORE, build / "bench/replay_server", *option],
                stdout=subprocess.PIPE, text=True, preexec_fn=take_priority)
            self.servers[kind] = server
            self.ports[kind] = server.stdout.readline().strip().rsplit(":", 1)[1]

    def close(self) -> None:
        for server in self.servers.values():
            server.kill()
            server.wait()

    def run(self, client: str, mode: str, shape: str, row_count: int, *options: str) -> Run:
        """Reads the query once in a fresh process and measures it."""
        kind, words = MODES[mode]
        connection = (f"Server=localhost,{self.ports[kind]};Database=bench;UID=sa;PWD=none;"
                      + words.replace("{certificate}", str(self.certificate)))
        query = f"SELECT * FROM bench.{shape} /* rows={row_count} */"
        if client == OURS:
            command = [self.build / "bench/read_client", connection, query]
        else:
            if client == ARROW_ODBC:
                connection = "Driver={ODBC Driver 18 for SQL Server};" + connection
            command = [sys.executable, HERE / "peer_client.py", client, connection, query]
        core = "mssql-odbc" if client == RUST else "msodbcsql18"
        environment = dict(os.environ, MSSQL_PYTHON_NATIVE_PROVIDER=core,
                           ODBCSYSINI=str(self.odbc))
        process = subprocess.Popen(
            ["taskset", "-c", CLIENT_CORE, "timeout", str(RUN_SECONDS_MAX), *command,
             *options],
            env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=take_priority)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = dict(line.split(" ", 1) for line in output.splitlines() if " " in line)
        if process.returncode != 0 or said.get("rows") != str(row_count):
            raise SystemExit(f"{client} {mode} {shape}: exit {process.returncode}, {said}")
        cpu_seconds = usage.ru_utime + usage.ru_stime
        return Run(cpu_seconds, usage.ru_stime / cpu_seconds, usage.ru_maxrss / 1024, said)


def compare_checksums(bench: Bench, clients, modes, shapes) -> None:
    for mode in modes:
        for shape in shapes:
            sums = {client: bench.run(client, mode, shape, CHECKSUM_ROW_COUNT, "--checksum")
                    .output["checksum"] for client in clients}
            if len(set(sums.values())) != 1:
                raise SystemExit(f"cells differ: {shape} {mode} {sums}")
            print(f"checksum {shape:3} {mode:6} {CHECKSUM_ROW_COUNT} rows "
                  f"{next(iter(sums.values()))} equal in {', '.join(sums)}", flush=True)


def measure(bench: Bench, clients, modes, shapes, round_count: int, scale: float):
    """The best run of each (mode, shape, client), rounds interleaved over the clients."""
    best: dict[tuple[str, str, str], Run] = {}
    for mode in modes:
        for shape in shapes:
            for round_number in range(round_count):
                for client in clients:
                    decides = client == OURS or any(
                        (mode, client) == (in_mode, peer) for _, in_mode, peer in RATIOS)
                    if round_number > 0 and not decides:
                        continue
                    run = bench.run(client, mode, shape, int(SHAPES[shape][1] * scale))
                    key = (mode, shape, client)
                    if key not in best or run.cpu_seconds < best[key].cpu_seconds:
                        best[key] = run
            for client in clients:
                print(line(best, mode, shape, client, scale), flush=True)
    return best


def line(best, mode: str, shape: str, client: str, scale: float) -> str:
    run = best[mode, shape, client]
    column_count, row_count = SHAPES[shape]
    cells = column_count * int(row_count * scale) / 1e6
    text = (f"{shape:3} {mode:6} {client:17} {run.cpu_seconds / cells:8.4f} "
            f"CPU-s per million cells  {cells / run.cpu_seconds:7.1f} M cells/CPU-s  "
            f"{run.system_part:3.0%} in the kernel  {run.peak_mb:5.0f} MB")
    ours = best.get((mode, shape, OURS))
    if ours and client != OURS:
        text += f"  {run.cpu_seconds / ours.cpu_seconds:5.1f} times ours"
    return text


def smallest_ratio(best, mode: str, peer: str) -> float | None:
    ratios = [run.cpu_seconds / best[mode, shape, OURS].cpu_seconds
              for (in_mode, shape, client), run in best.items()
              if in_mode == mode and client == peer and (mode, shape, OURS) in best]
    return min(ratios, default=None)


def choices(words: str, known) -> list[str]:
    chosen = words.split(",")
    unknown = [word for word in chosen if word not in known]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench read", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--modes", default=DEFAULT_MODES,
                        help=", ".join(MODES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0,
                        help="part of the rows to read; for a quick look")
    given = parser.parse_args()
    clients = choices(given.clients, CLIENTS)
    shapes, modes = choices(given.shapes, SHAPES), choices(given.modes, MODES)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.build, pathlib.Path(folder))
        try:
            compare_checksums(bench, clients, modes, shapes)
            for client in clients:
                run = bench.run(client, modes[0], shapes[0], 1)
                print(f"start-up {client}: {run.cpu_seconds:.2f} s CPU, "
                      f"{run.peak_mb:.0f} MB", flush=True)
            best = measure(bench, clients, modes, shapes, given.rounds, given.scale)
        finally:
            bench.close()
    for name, mode, peer in RATIOS:
        ratio = smallest_ratio(best, mode, peer)
        if ratio is not None:
            print(f"{name} ratio: {ratio:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
