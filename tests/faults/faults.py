"""What a user gets wrong: each mistake is one clear error with its exit code, and no secret anywhere.

For every case `check` and `run` are tried; output and every file left behind are searched for the
password in plain, as UTF-16 and as LOGIN7 obfuscates it. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import os
import pathlib
import socket
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE.parent / "harness"))

from pipeline import RECONFIGURE, RETRY, Pipeline  # noqa: E402
from simulator import Simulator  # noqa: E402

WRONG = "Wrong-canary-9f3"
READER = "Reader-canary-4b1"


@dataclasses.dataclass
class Case:
    name: str
    code: str  # Of the catalogue; empty: it must succeed.
    exit: int
    says: tuple[str, ...] = ()  # Each must occur in the output.
    settings: dict = dataclasses.field(default_factory=dict)


def forms(secret: str) -> list[bytes]:
    """The forms a secret could leak in."""
    utf16 = secret.encode("utf-16-le")
    obfuscated = bytes((((b << 4) & 0xF0) | (b >> 4)) ^ 0xA5 for b in utf16)
    return [secret.encode(), utf16, obfuscated, base64.b64encode(secret.encode())]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def prepare(simulator: Simulator) -> None:
    simulator.create("plain")
    simulator.run("EXEC sys.sp_cdc_disable_db")
    simulator.create("faults", "CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, name nvarchar(20))")
    simulator.run("INSERT dbo.orders VALUES (1, N'a')")
    simulator.enable("orders")
    for login in ("blind", "half"):
        simulator.run(f"CREATE LOGIN {login} WITH PASSWORD = '{READER}'")
        simulator.run(f"CREATE USER {login} FOR LOGIN {login}")
    simulator.run("GRANT SELECT ON dbo.orders TO half")
    simulator.run("GRANT SELECT ON cdc.lsn_time_mapping TO half")


def cases(state: pathlib.Path) -> list[Case]:
    authority = next(state.rglob("ca.pem"))
    trusted = f"Encrypt=yes;CAFile={authority}"
    return [
        Case("all is well in clear", "", 0),
        Case("all is well under TLS", "", 0, settings={"connection": trusted}),
        Case("all is well under TDS 8.0", "", 0, settings={"connection": trusted.replace("yes", "strict")}),
        Case("trusting any certificate", "", 0, ("not verified",),
             {"connection": "Encrypt=yes;TrustServerCertificate=yes"}),
        Case("a wrong password", "MC2001", RECONFIGURE, ("18456",), {"password": WRONG}),
        Case("an unknown login", "MC2001", RECONFIGURE, ("18456",), {"user": "nobody", "password": WRONG}),
        Case("an unknown database", "MC2002", RECONFIGURE, ("nowhere",), {"database": "nowhere"}),
        Case("an untrusted certificate", "MC1005", RECONFIGURE, (), {"connection": "Encrypt=yes"}),
        Case("an untrusted certificate under strict", "MC1005", RECONFIGURE, (),
             {"connection": "Encrypt=strict;TrustServerCertificate=yes"}),
        Case("a certificate of another name", "MC1005", RECONFIGURE, ("db.example",),
             {"connection": trusted + ";HostNameInCertificate=db.example"}),
        Case("a closed port", "MC1001", RETRY, (), {"server": f"127.0.0.1,{closed_port()}"}),
        Case("a host without an address", "MC1007", RETRY, ("no-such-host.invalid",),
             {"server": "no-such-host.invalid,1433"}),
        Case("a database without CDC", "MC3003", RECONFIGURE, ("plain",), {"database": "plain"}),
        Case("an unknown capture instance", "MC3004", RECONFIGURE, ("dbo_orders",),
             {"capture_instance": "dbo_order"}),
        Case("a login without any grant", "MC3004", RECONFIGURE, (), {"user": "blind", "password": READER}),
        Case("a login without SELECT on the change table", "MC2005", RECONFIGURE, ("dbo_orders_CT",),
             {"user": "half", "password": READER}),
        Case("a keyword that changes meaning", "MC6006", RECONFIGURE, ("Authentication",),
             {"connection": "Authentication=ActiveDirectoryInteractive"}),
        Case("a number that is none", "MC6002", RECONFIGURE, ("maxCommitsPerBatch",), {"maxCommitsPerBatch": 0}),
    ]


def try_case(program: pathlib.Path, folder: pathlib.Path, simulator: Simulator, case: Case) -> list[str]:
    settings = {"database": "faults", "capture_instance": "dbo_orders", **case.settings}
    wrong = []
    for command in ("check", "run"):
        pipeline = Pipeline(program, folder / command, simulator, settings["database"],
                            settings["capture_instance"], "faults-v1", retries=0,
                            **{k: v for k, v in settings.items() if k not in ("database", "capture_instance")})
        code, output = pipeline.run(command)
        if code != case.exit:
            wrong.append(f"{command} ended with {code} instead of {case.exit}:\n{output}")
        if case.code and case.code not in output:
            wrong.append(f"{command} does not say {case.code}:\n{output}")
        wrong += [f"{command} does not say {text!r}:\n{output}" for text in case.says if text not in output]
        kept = [(path, path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
        for where, data in [(f"{command}'s output", output.encode()), *kept]:
            if any(form in data for form in forms(pipeline.password)):
                wrong.append(f"the password is in {where}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-faults-") as name:
        folder = pathlib.Path(name)
        simulator = Simulator(args.program, folder / "sim")
        try:
            prepare(simulator)
            for number, case in enumerate(cases(folder / "sim")):
                wrong = try_case(args.program, folder / str(number), simulator, case)
                passed += not wrong
                failed += bool(wrong)
                for text in wrong:
                    print(f"FAILED {case.name}: {text}")
        finally:
            simulator.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
