"""The peers: how each logs in and what it says of a row, as canonical texts.

An adapter is a function (server, mode, query) -> rows of texts; a mode is how the connection
is encrypted. It raises Missing when the client is not on this machine, anything else when
the client fails.
"""

import dataclasses
import datetime
import decimal
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
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


def texts(rows) -> list[list[str | None]]:
    known = values.columns()
    return [[python_text(value, column) for value, column in zip(row, known, strict=True)]
            for row in rows]


def microsoft_odbc(server: Server, mode: str, query: str):
    """mssql-python over Microsoft's ODBC driver 18, which is what it loads by default."""
    return mssql_python(server, mode, query, "msodbcsql18")


def mssql_python(server: Server, mode: str, query: str, core: str):
    """In a process of its own: the driver reads its certificates and core from the
    environment when it is loaded."""
    spelled = {"login only": "no", "tls": "yes", "strict": "strict"}[mode]
    # Strict never trusts blindly, so the authority is given; it names localhost.
    connection = (f"Server=localhost,{server.port};Database={server.database};"
                  f"UID={server.user};PWD={{{server.password}}};Encrypt={spelled};")
    if server.host not in ("127.0.0.1", "localhost"):
        connection = connection.replace("localhost", server.host)
    environment = dict(os.environ, MSSQL_PYTHON_NATIVE_PROVIDER=core,
                       PEER_CONNECTION=connection, PEER_QUERY=query)
    if server.authority_pem:
        environment["SSL_CERT_FILE"] = server.authority_pem
    return from_child([sys.executable,
                       HERE / "mssql_python_reader.py"], environment)


def python_tds(server: Server, mode: str, query: str):
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
            cursor.execute(query)
            return texts(cursor.fetchall())


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


def go_program() -> pathlib.Path:
    """The Go reader, built once per source into the cache."""
    if not shutil.which("go"):
        raise Missing("go-mssqldb (no Go toolchain)")
    cache = pathlib.Path(os.environ.get("MSSQL_CDC_CACHE", tempfile.gettempdir()))
    program = cache / "go" / "peer_reader"
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go",
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing("go-mssqldb: " + done.stderr.strip()[-600:])
    return program


def go_mssqldb(server: Server, mode: str, query: str):
    options = {"database": server.database, "app name": "peers",
               "encrypt": {"clear": "disable", "tls": "true", "strict": "strict"}[mode]}
    if mode != "clear" and server.authority_pem:
        options |= {"certificate": server.authority_pem, "hostNameInCertificate": "localhost"}
    user = urllib.parse.quote(server.user) + ":" + urllib.parse.quote(server.password)
    dsn = f"sqlserver://{user}@{server.host}:{server.port}?{urllib.parse.urlencode(options)}"
    return from_child([go_program(), dsn, query], dict(os.environ))


FIELD, LINE = "\x1f", "\x1e"
FREETDS_MOMENT = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d+) (?P<year>\d+) +(?P<hour>\d+):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d))?(?:[:.](?P<fraction>\d+))?(?P<half>[AP]M)(?P<offset> ?[+-]\d\d:\d\d)?")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def freetds_text(text: str, column: values.Column) -> str | None:
    """The canonical text of what tsql prints."""
    if text == "NULL":
        return None
    if column.family in ("binary", "varbinary", "image"):
        return "0x" + text.upper()
    if column.family == "uniqueidentifier":
        return text.upper()
    found = FREETDS_MOMENT.fullmatch(text.strip())
    if not found or column.family not in (
            "date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset"):
        return text
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "PM" else 0)
    date = f"{int(found['year']):04}-{MONTHS.index(found['month']) + 1:02}-{int(found['day']):02}"
    time = f"{hour:02}:{found['minute']}"
    if found["second"]:
        time += ":" + found["second"]
    if found["fraction"]:
        time += "." + found["fraction"]
    if column.family == "date":
        return date
    if column.family == "time":
        return time
    offset = f" {found['offset'].strip()}" if found["offset"] else ""
    return f"{date} {time}{offset}"


def freetds(server: Server, mode: str, query: str):
    if not shutil.which("tsql"):
        raise Missing("FreeTDS tsql (Debian package freetds-bin)")
    spelled = {"clear": "off", "login only": "request", "tls": "require"}[mode]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "freetds.conf"
        config.write_text(
            f"[peer]\nhost = {server.host}\nport = {server.port}\ntds version = 7.4\n"
            f"encryption = {spelled}\nclient charset = UTF-8\ntext size = 1000000\n")
        done = subprocess.run(
            ["tsql", "-S", "peer", "-U", server.user, "-P", server.password,
             "-D", server.database, "-J", "UTF-8", "-o", "fhq", "-t", FIELD, "-r", LINE],
            input=query + "\ngo\nexit\n", capture_output=True, text=True,
            timeout=CLIENT_SECONDS_MAX,
            env=dict(os.environ, FREETDSCONF=str(config), LC_ALL="C.UTF-8"))
    if FIELD not in done.stdout:
        raise RuntimeError((done.stdout + done.stderr).strip()[-600:])
    known = values.columns()
    lines = [line for line in done.stdout.split(LINE) if FIELD in line]
    return [[freetds_text(text, column)
             for text, column in zip(line.split(FIELD), known, strict=True)]
            for line in lines]


# (name, adapter, the modes it can do)
PEERS = [
    ("FreeTDS tsql", freetds, ["clear", "login only", "tls"]),
    ("Microsoft ODBC 18", microsoft_odbc, ["login only", "tls", "strict"]),
    ("go-mssqldb", go_mssqldb, ["clear", "tls", "strict"]),
    ("python-tds", python_tds, ["clear", "login only", "tls"]),
]
