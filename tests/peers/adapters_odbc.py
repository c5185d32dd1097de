"""The peers that unixODBC loads: Microsoft's driver and FreeTDS', both through pyodbc.

The drivers are registered in an odbcinst.ini of their own, so that nothing is asked of the
machine's. Each reading is a process of its own: the drivers read certificates and
configuration from the environment when they are loaded.
"""

import importlib.util
import os
import pathlib
import tempfile

import values
from adapters import Missing, Server, python_child

FREETDS_DRIVERS = ["/usr/lib/x86_64-linux-gnu/odbc/libtdsodbc.so",
                   "/usr/lib/aarch64-linux-gnu/odbc/libtdsodbc.so"]


def microsoft_driver() -> pathlib.Path:
    """The driver that the package mssql-python-odbc carries."""
    package = importlib.util.find_spec("mssql_python_odbc")
    if package is None:
        raise Missing("Microsoft ODBC 18 (Python package mssql-python-odbc)")
    libraries = pathlib.Path(package.origin).parent / "libs/linux/debian_ubuntu"
    found = sorted(libraries.glob("*/lib/libmsodbcsql-18*"))
    if not found:
        raise Missing(f"Microsoft ODBC 18 (no libmsodbcsql-18 below {libraries})")
    return found[0]


def freetds_driver() -> pathlib.Path:
    for name in FREETDS_DRIVERS:
        if pathlib.Path(name).exists():
            return pathlib.Path(name)
    raise Missing("FreeTDS ODBC (Debian package tdsodbc)")


def registered(folder: pathlib.Path, driver: pathlib.Path) -> dict[str, str]:
    """The environment in which unixODBC knows this driver, as `peer`, and no other."""
    (folder / "odbcinst.ini").write_text(f"[peer]\nDriver = {driver}\n")
    (folder / "odbc.ini").write_text("")
    return dict(os.environ, ODBCSYSINI=str(folder), ODBCINSTINI="odbcinst.ini",
                ODBCINI=str(folder / "odbc.ini"), LC_ALL="C.UTF-8")


def pyodbc_microsoft(server: Server, mode: str, columns: list[values.Column],
                     script: str = "odbc_reader.py"):
    spelled = {"login only": "no", "tls": "yes", "strict": "strict"}[mode]
    # Strict never trusts blindly, so the authority is given; it names localhost.
    host = "localhost" if server.host == "127.0.0.1" else server.host
    connection = (f"Driver=peer;Server={host},{server.port};Database={server.database};"
                  f"UID={server.user};PWD={{{server.password}}};Encrypt={spelled};")
    with tempfile.TemporaryDirectory() as folder:
        environment = registered(pathlib.Path(folder), microsoft_driver())
        if server.authority_pem:
            environment["SSL_CERT_FILE"] = server.authority_pem
        return python_child(script, connection, columns, environment)


def pyodbc_freetds(server: Server, mode: str, columns: list[values.Column],
                   script: str = "odbc_reader.py"):
    spelled = {"clear": "off", "login only": "request", "tls": "require"}[mode]
    connection = (f"Driver=peer;Server={server.host};Port={server.port};TDS_Version=7.4;"
                  f"Database={server.database};UID={server.user};PWD={server.password};"
                  f"Encryption={spelled};ClientCharset=UTF-8;")
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "freetds.conf"
        config.write_text("[global]\ntext size = 1000000\n")
        environment = registered(pathlib.Path(folder), freetds_driver())
        return python_child(script, connection, columns,
                            dict(environment, FREETDSCONF=str(config)))


def peer_list() -> list[tuple]:
    return [
        ("Microsoft ODBC 18 by pyodbc", pyodbc_microsoft, ["login only", "tls", "strict"]),
        ("FreeTDS ODBC by pyodbc", pyodbc_freetds, ["clear", "login only", "tls"]),
    ]
