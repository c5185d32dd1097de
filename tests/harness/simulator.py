"""Starts `mssql-cdc simulate` and speaks to it with python-tds: what the Python tests share."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytds

PASSWORD = "Sim-canary-7"


class Simulator:
    """A simulator of our own; `run` sends T-SQL as its administrator.

    With MSSQL_CDC_TEST_SERVER set (host:port; login MSSQL_CDC_TEST_USER, password
    MSSQL_CDC_TEST_PASSWORD) it is that server instead, and nothing is started. `encryption`
    is what a connection string needs to trust it: the authority's file MSSQL_CDC_TEST_CA,
    or the simulator's own.
    """

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, *arguments: str) -> None:
        self.process = None
        self.user, self.password, self.host = "sa", PASSWORD, "127.0.0.1"
        named = os.environ.get("MSSQL_CDC_TEST_SERVER")
        if named:
            self.host, port = named.rsplit(":", 1)
            self.port = int(port)
            self.user = os.environ.get("MSSQL_CDC_TEST_USER", "sa")
            self.password = os.environ["MSSQL_CDC_TEST_PASSWORD"]
            authority = os.environ.get("MSSQL_CDC_TEST_CA")
            self.encryption = "Encrypt=yes" + (f";CAFile={authority}" if authority else "")
        else:
            self.encryption = f"Encrypt=optional;CAFile={folder}/state/certificates/ca.pem"
            self._start(program, folder, arguments)
        self.connection = self.connect("master")

    def _start(self, program: pathlib.Path, folder: pathlib.Path, arguments) -> None:
        self.process = subprocess.Popen(
            [program, "simulate", "--state", folder / "state", "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=dict(os.environ, MSSQL_CDC_SIM_PASSWORD=PASSWORD),
        )
        line = self.process.stdout.readline()
        while line and "listening on" not in line:
            line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the simulator did not start")
        self.port = int(line.strip().rsplit(":", 1)[1])

    def connect(self, database: str):
        return pytds.connect(
            self.host, port=self.port, user=self.user, password=self.password,
            database=database, autocommit=True,
        )

    def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def create(self, database: str, *statements: str) -> None:
        """A new database with CDC, and then `statements` in it; it stays the current one."""
        self.run(f"CREATE DATABASE {database}")
        self.run(f"USE {database}")
        self.run("EXEC sys.sp_cdc_enable_db")
        for statement in statements:
            self.run(statement)

    def enable(self, table: str) -> None:
        self.run(f"EXEC sys.sp_cdc_enable_table N'dbo', N'{table}', @role_name = NULL")
        self.capture()

    def capture(self) -> None:
        self.run("EXEC sys.sp_cdc_scan")

    def stop(self) -> None:
        self.connection.close()
        if self.process:
            self.process.terminate()
            self.process.wait()
