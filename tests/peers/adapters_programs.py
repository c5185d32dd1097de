"""The peers that are programs: FreeTDS' tsql and small readers in the client's own language.

A reader takes its settings from the command line, reads one query and prints each row as a
JSON array of canonical texts. Readers are built into the cache, once per source.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.fspath(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))

import dev_paths  # noqa: E402
import values  # noqa: E402
from adapters import CLIENT_SECONDS_MAX, HERE, Missing, Server, from_child  # noqa: E402

CACHE = dev_paths.cache()


def go_program() -> pathlib.Path:
    """The Go reader, built once per source into the cache."""
    if not shutil.which("go"):
        raise Missing("go-mssqldb (no Go toolchain)")
    program = CACHE / "go" / "peer_reader"
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go",
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing("go-mssqldb: " + done.stderr.strip()[-600:])
    return program


def go_dsn(server: Server, mode: str) -> str:
    options = {"database": server.database, "app name": "peers",
               "encrypt": {"clear": "disable", "tls": "true", "strict": "strict"}[mode]}
    if mode != "clear" and server.authority_pem:
        options |= {"certificate": server.authority_pem, "hostNameInCertificate": "localhost"}
    user = urllib.parse.quote(server.user) + ":" + urllib.parse.quote(server.password)
    return f"sqlserver://{user}@{server.host}:{server.port}?{urllib.parse.urlencode(options)}"


def go_mssqldb(server: Server, mode: str, columns: list[values.Column]):
    return from_child([go_program(), go_dsn(server, mode), values.query(columns)],
                      dict(os.environ))


def settings(server: Server, mode: str, columns: list[values.Column]) -> dict[str, str]:
    """The environment that tells a reader what to do."""
    return dict(os.environ, PEER_HOST=server.host, PEER_PORT=str(server.port),
                PEER_USER=server.user, PEER_PASSWORD=server.password,
                PEER_DATABASE=server.database, PEER_MODE=mode,
                PEER_AUTHORITY=server.authority_pem or "",
                PEER_QUERY=values.query(columns))


def tedious(server: Server, mode: str, columns: list[values.Column]):
    if not shutil.which("node"):
        raise Missing("tedious (no program node)")
    environment = settings(server, mode, columns)
    environment["NODE_PATH"] = str(CACHE / "node" / "node_modules")
    return from_child(["node", HERE / "node/reader.js"], environment)


@functools.cache
def java_classes(*more: str) -> str:
    """The class path of the Java reader, which is compiled for it with `more` sources."""
    drivers = sorted((CACHE / "java/peers").glob("mssql-jdbc-*.jar"))
    if not drivers or not shutil.which("javac"):
        raise Missing("mssql-jdbc (Maven artefact)" if shutil.which("javac")
                      else "mssql-jdbc (no program javac)")
    classes = CACHE / "java/reader"
    sources = [HERE / name for name in ("java/Reader.java", *more)]
    subprocess.run(["javac", "-cp", os.pathsep.join(map(str, drivers)), "-d", classes,
                    *sources], check=True, stdin=subprocess.DEVNULL)
    return os.pathsep.join(map(str, [classes, *drivers]))


def mssql_jdbc(server: Server, mode: str, columns: list[values.Column]):
    return from_child(["java", "-XX:TieredStopAtLevel=1", "-cp", java_classes(), "Reader"],
                      settings(server, mode, columns))


@functools.cache
def tiberius_program() -> pathlib.Path:
    """The Rust reader, built once per source into the cache."""
    program = CACHE / "cargo/peers/release/peer_reader"
    done = subprocess.run(
        ["cargo", "build", "--quiet", "--release", "--locked", "--offline"],
        cwd=HERE / "rust", env=dict(os.environ, CARGO_TARGET_DIR=str(CACHE / "cargo/peers")),
        capture_output=True, text=True) if shutil.which("cargo") else None
    if done is None or done.returncode != 0:
        raise Missing("tiberius: " + (done.stderr.strip()[-600:] if done else "no cargo"))
    return program


def tiberius(server: Server, mode: str, columns: list[values.Column]):
    return from_child([tiberius_program()], settings(server, mode, columns))


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


def freetds_environment(folder: str, server: Server, mode: str) -> dict[str, str]:
    """The environment in which FreeTDS knows the server as `peer`."""
    spelled = {"clear": "off", "login only": "request", "tls": "require"}[mode]
    config = pathlib.Path(folder) / "freetds.conf"
    config.write_text(
        f"[peer]\nhost = {server.host}\nport = {server.port}\ntds version = 7.4\n"
        f"encryption = {spelled}\nclient charset = UTF-8\ntext size = 1000000\n")
    return dict(os.environ, FREETDSCONF=str(config), LC_ALL="C.UTF-8")


def freetds(server: Server, mode: str, columns: list[values.Column]):
    if not shutil.which("tsql"):
        raise Missing("FreeTDS tsql (Debian package freetds-bin)")
    with tempfile.TemporaryDirectory() as folder:
        environment = freetds_environment(folder, server, mode)
        done = subprocess.run(
            ["tsql", "-S", "peer", "-U", server.user, "-P", server.password,
             "-D", server.database, "-J", "UTF-8", "-o", "fhq", "-t", FIELD, "-r", LINE],
            input=values.query(columns) + "\ngo\nexit\n", capture_output=True, text=True,
            timeout=CLIENT_SECONDS_MAX, env=environment)
    if FIELD not in done.stdout:
        raise RuntimeError((done.stdout + done.stderr).strip()[-600:])
    lines = [line for line in done.stdout.split(LINE) if FIELD in line]
    return [[freetds_text(text, column)
             for text, column in zip(line.split(FIELD), columns, strict=True)]
            for line in lines]


def peer_list() -> list[tuple]:
    return [
        ("FreeTDS tsql", freetds, ["clear", "login only", "tls"]),
        ("go-mssqldb", go_mssqldb, ["clear", "tls", "strict"]),
        ("mssql-jdbc", mssql_jdbc, ["login only", "tls", "strict"]),
        ("tedious", tedious, ["clear", "tls", "strict"]),
        ("tiberius", tiberius, ["clear", "login only", "tls", "strict"]),
    ]
