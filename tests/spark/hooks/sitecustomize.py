"""On the path of workers that a test wants to lose while they read.

MSSQL_CDC_TEST_HOOK names a folder. Where it has a file `kill`, the first task that has read
something kills its executor; where it has `hang`, the first one to read hangs until another attempt
at its range is done. Each file is taken by one task only.
"""

import os
import pathlib
import signal
import zlib


def take(folder: pathlib.Path, name: str) -> bool:
    """Whether this process is the one that found the file."""
    try:
        (folder / name).rename(folder / f"{name}-taken")
        return True
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_executor() -> None:
    """The Java process that the worker's daemon belongs to."""
    pid = os.getpid()
    while pid > 1 and "java" not in pathlib.Path(f"/proc/{pid}/comm").read_text():
        pid = parent_of(pid)
    if pid > 1:
        os.kill(pid, signal.SIGKILL)


def hooked(folder: pathlib.Path) -> None:
    from mssql_cdc import source

    read = source._ReaderBase.read

    def reads(self, partition):
        range_ = pathlib.Path(folder / f"done-{zlib.crc32(partition.task.encode())}")
        if take(folder, "hang"):
            import time

            while not range_.exists():
                time.sleep(0.05)
        for number, batch in enumerate(read(self, partition)):
            yield batch
            if number == 0 and take(folder, "kill"):
                kill_executor()
        range_.touch()

    source._ReaderBase.read = reads


if os.environ.get("MSSQL_CDC_TEST_HOOK"):
    hooked(pathlib.Path(os.environ["MSSQL_CDC_TEST_HOOK"]))
