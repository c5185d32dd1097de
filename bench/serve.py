"""`./dev bench serve`: how fast the simulator hands out change rows, beside prebuilt bytes.

The simulator holds 10 million change rows of the shape W1 in 100 commits. Our client reads
all of them with the question that the product asks (change table and commit times, in the
order of the clustered index), and then as many rows of the same columns from the replay
server, which only copies bytes that it made before: what is left there is the client. Both
in clear, server and client on a core each where there are two. The simulator's first answer is
encoded row by row and told apart; later ones come from what it kept of it. Of those, and of the
replay server's, the best of the rounds counts. The last line is `serve ratio: N`: rows/s of the
simulator by rows/s of the replay server; at 1.0 the client is the limit.
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
QUESTION = (
    "SELECT c.[__$start_lsn], c.[__$seqval], c.[__$operation], c.[__$command_id], "
    "m.tran_end_time AS commit_time, c.id, c.customer_id, c.status_id, "
    "c.amount, c.name, c.updated_at, c.is_active, c.region FROM cdc.dbo_W1_CT AS c "
    "JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = c.[__$start_lsn] "
    "WHERE c.[__$start_lsn] > 0x00 AND c.[__$start_lsn] <= 0xFFFFFFFFFFFFFFFFFFFF "
    "ORDER BY c.[__$start_lsn], c.[__$command_id], c.[__$seqval], c.[__$operation]")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
RUN_SECONDS_MAX = 600


@dataclasses.dataclass(frozen=True)
class Run:
    wall_seconds: float
    client_seconds: float  # CPU, start-up included.
    server_seconds: float  # CPU, of this request.


def cpu_seconds(process: subprocess.Popen) -> float:
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_megabytes(process: subprocess.Popen) -> float:
    """What it has in memory of its own, without the files that are mapped."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1000


def started(*command) -> tuple[subprocess.Popen, str]:
    """A server and its port."""
    server = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if "listening on" not in line:
        raise SystemExit(f"{command[0]} did not start")
    return server, line.strip().rsplit(":", 1)[1]


def read(client: pathlib.Path, server: subprocess.Popen, connection: str, query: str,
         row_count: int) -> Run:
    before, begun = cpu_seconds(server), time.monotonic()
    process = subprocess.Popen([client, connection, query], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    run = Run(time.monotonic() - begun, usage.ru_utime + usage.ru_stime,
              cpu_seconds(server) - before)
    if process.returncode != 0 or output.split() != ["rows", str(row_count)]:
        raise SystemExit(f"exit {process.returncode}: {output!r}, not {row_count} rows")
    return run


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench serve", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    client = given.build / "bench/read_client"
    words = "Encrypt=no;TrustServerCertificate=yes;Database=bench;UID=sa;PWD=Serve-1"
    best: dict[str, Run] = {}
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-serve-") as folder:
        begun = time.monotonic()
        simulator, simulator_port = started(given.build / "bench/change_server",
                                            pathlib.Path(folder) / "state", given.rows,
                                            given.commits)
        print(f"(the simulator took {time.monotonic() - begun:.0f} s to fill, "
              f"{sum(f.stat().st_size for f in pathlib.Path(folder).rglob('*.db*')) / 1e6:,.0f}"
              " MB)", flush=True)
        replay, replay_port = started(given.build / "bench/replay_server", "--no-encryption")
        try:
            filled = resident_megabytes(simulator)
            for turn in range(given.rounds + 1):
                for name, server, port, query in (
                        ("simulator" if turn else "first", simulator, simulator_port, QUESTION),
                        ("prebuilt", replay, replay_port,
                         f"SELECT * FROM bench.C1 /* rows={given.rows} */")):
                    run = read(client, server, f"Server=127.0.0.1,{port};{words}", query,
                               given.rows)
                    if name not in best or run.wall_seconds < best[name].wall_seconds:
                        best[name] = run
            print(f"(the simulator has in memory {filled:,.0f} MB when it is filled, "
                  f"{resident_megabytes(simulator):,.0f} MB when it has served)")
        finally:
            simulator.stdin.close()
            simulator.wait(60)
            replay.kill()
            replay.wait()
    for name, run in best.items():
        print(f"{name:9} {given.rows / run.wall_seconds:12,.0f} rows/s  {run.wall_seconds:.1f} s  "
              f"client {run.client_seconds:.1f} CPU-s  server {run.server_seconds:.1f} CPU-s")
    print(f"serve ratio: {best['prebuilt'].wall_seconds / best['simulator'].wall_seconds:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
