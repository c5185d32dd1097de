"""The peers: how each logs in and what it says of a row, as canonical texts.

An adapter is a function (server, mode, columns) -> rows of texts, which reads these columns
of the table of values; a mode is how the connection is encrypted. It raises Missing when the client is not on this machine, anything else when
the client fails.
"""

import dataclasses
import datetime
import decimal
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import uuid

import values

HERE = pathlib.Path(__file__).resolve().parent
CLIENT_SECONDS_MAX = 120


class Missing(Exception):
    """The client is not here; the text names it."""


@dataclasses.dataclass(frozen=True)
class Server:
    host: str
    port: int
    user: str
    password: str
    database: str
    authority_pem: str | None  # The file of the certificate authority to trust.


def offset_text(moment: datetime.datetime) -> str:
    minutes = int(moment.utcoffset().total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f" {sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def python_text(value, column: values.Column) -> str | None:
    """The canonical text of what a Python driver returns."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        if column.family == "date":
            return f"{value:%Y-%m-%d}".zfill(10)
        text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
        return text + (offset_text(value) if value.tzinfo else "")
    if isinstance(value, datetime.time):
        return value.isoformat("microseconds")
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    if isinstance(value, (bytes, bytearray)):
        return "0x" + value.hex().upper()
    return str(value)


def texts(rows, columns: list[values.Column]) -> list[list[str | None]]:
    return [[python_text(value, column) for value, column in zip(row, columns, strict=True)]
            for row in rows]


def python_child(script: str, connection: str, columns: list[values.Column],
                 environment: dict[str, str]):
    """What a script of this folder reads in a process of its own."""
    return from_child([sys.executable, HERE / script],
                      dict(environment, PEER_CONNECTION=connection,
                           PEER_COLUMNS=",".join(column.name for column in columns)))


def print_rows(session) -> None:
    """What such a script does, once it is connected."""
    names = os.environ["PEER_COLUMNS"].split(",")
    columns = [column for column in values.columns() if column.name in names]
    cursor = session.cursor()
    cursor.execute(values.query(columns))
    for row in texts(cursor.fetchall(), columns):
        print(json.dumps(row))


def microsoft_odbc(server: Server, mode: str, columns: list[values.Column]):
    """mssql-python over Microsoft's ODBC driver 18, which is what it loads by default."""
    return mssql_python(server, mode, columns, "msodbcsql18")


def microsoft_rust(server: Server, mode: str, columns: list[values.Column]):
    """mssql-python over Microsoft's Rust core, which the package mssql-python-rs carries."""
    if importlib.util.find_spec("mssql_py_core") is None:
        raise Missing("mssql-python-rs")
    return mssql_python(server, mode, columns, "mssql-odbc")


def mssql_python(server: Server, mode: str, columns: list[values.Column], core: str):
    """In a process of its own: the driver reads its certificates and core from the
    environment when it is loaded."""
    spelled = {"login only": "no", "tls": "yes", "strict": "strict"}[mode]
    # Strict never trusts blindly, so the authority is given; it names localhost.
    connection = (f"Server=localhost,{server.port};Database={server.database};"
                  f"UID={server.user};PWD={{{server.password}}};Encrypt={spelled};")
    if server.host not in ("127.0.0.1", "localhost"):
        connection = connection.replace("localhost", server.host)
    environment = dict(os.environ, MSSQL_PYTHON_NATIVE_PROVIDER=core)
    if server.authority_pem:
        environment["SSL_CERT_FILE"] = server.authority_pem
    return python_child("mssql_python_reader.py", connection, columns, environment)


def python_tds(server: Server, mode: str, columns: list[values.Column]):
    try:
        import pytds
    except ImportError:
        raise Missing("python-tds") from None
    encrypted = {}
    if mode != "clear":
        encrypted = {"cafile": server.authority_pem, "validate_host": False,
                     "enc_login_only": mode == "login only"}
    with pytds.connect(server.host, port=server.port, user=server.user,
                       password=server.password, database=server.database, autocommit=True,
                       timeout=CLIENT_SECONDS_MAX, **encrypted) as connection:
        with connection.cursor() as cursor:
            cursor.execute(values.query(columns))
            return texts(cursor.fetchall(), columns)


def from_child(command: list, environment: dict[str, str], cwd=None):
    """Runs a reader that prints one JSON array a row."""
    done = subprocess.run([str(word) for word in command], env=environment, cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=CLIENT_SECONDS_MAX)
    if done.returncode == 3:
        raise Missing(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:] or f"exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def pymssql_wheel(server: Server, mode: str, columns: list[values.Column]):
    """pymssql with the FreeTDS that its wheel carries."""
    try:
        import pymssql
    except ImportError:
        raise Missing("pymssql") from None
    spelled = {"clear": "off", "login only": "request", "tls": "require"}[mode]
    with pymssql.connect(server.host, server.user, server.password, server.database,
                         port=str(server.port), tds_version="7.4", charset="UTF-8",
                         encryption=spelled, autocommit=True,
                         timeout=CLIENT_SECONDS_MAX) as connection:
        with connection.cursor() as cursor:
            cursor.execute(values.query(columns))
            return texts(cursor.fetchall(), columns)


def peer_list() -> list[tuple]:
    """(name, adapter, the modes it can do)."""
    return [
        ("Microsoft ODBC 18 by mssql-python", microsoft_odbc, ["login only", "tls", "strict"]),
        ("mssql-python-rs", microsoft_rust, ["login only", "tls", "strict"]),
        ("python-tds", python_tds, ["clear", "login only", "tls"]),
        ("pymssql", pymssql_wheel, ["clear", "login only", "tls"]),
    ]
