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
import signal
import socket
import subprocess
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
    settings: dict = dataclasses.field(default_factory=dict)  # {folder} is the case's own.
    accepts: tuple[str, ...] = ()  # Other codes that say the same.
    keeps_quiet: tuple[str, ...] = ()  # None may occur in the output.


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
        Case("strict verifies whatever is trusted", "", 0, keeps_quiet=("not verified",),
             settings={"connection": trusted.replace("yes", "strict") + ";TrustServerCertificate=yes"}),
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
    ]


def option_cases() -> list[Case]:
    return [
        Case("a number that is none", "MC6002", RECONFIGURE, ("maxCommitsPerBatch",), {"maxCommitsPerBatch": 0}),
        Case("a boolean that is none", "MC6002", RECONFIGURE, ("failOnDataLoss", "true, 1, yes"),
             {"failOnDataLoss": "ture"}),
        Case("a misspelt option", "MC6004", RECONFIGURE, ("nearest=bootstrap",), {"boostrap": True}),
        Case("options nobody knows", "", 0, ("unknown options are ignored: remark, zzz (",),
             {"zzz": 1, "remark": "x"}),
        Case("a backend of the Python package", "MC6002", RECONFIGURE, ("Python package",),
             {"backend": "mssql-python"}),
        Case("an app_id over two lines", "MC6002", RECONFIGURE, ("app_id",), {"app_id": "a\nb"}),
        Case("a checkpoint in the table's folder", "MC6005", RECONFIGURE, ("checkpoint", "target"),
             {"checkpoint": "{folder}/bronze/checkpoint"}),
        Case("a checkpoint that Delta leaves alone", "", 0, (), {"checkpoint": "{folder}/bronze/_checkpoint"}),
        Case("facts in the target", "MC6005", RECONFIGURE, ("facts_table",), {"facts_table": "{folder}/bronze"}),
        Case("a file where the target must be", "MC4006", RECONFIGURE, ("a-file",),
             {"target": "{folder}/a-file/bronze"}, accepts=("MC5008",)),
        Case("a file where the facts must be", "MC4006", RECONFIGURE, ("a-file",),
             {"facts_table": "{folder}/a-file/facts"}, accepts=("MC5008",)),
        Case("a file where the checkpoint must be", "MC5008", RECONFIGURE, ("a-file",),
             {"checkpoint": "{folder}/a-file/checkpoint"}),
    ]


def placed(value, folder: pathlib.Path):
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


def try_case(program: pathlib.Path, folder: pathlib.Path, simulator: Simulator, case: Case) -> list[str]:
    settings = {"database": "faults", "capture_instance": "dbo_orders", "app_id": "faults-v1", **case.settings}
    wrong = []
    for command in ("check", "run"):
        (folder / command).mkdir(parents=True)
        (folder / command / "a-file").write_text("")
        pipeline = Pipeline(program, folder / command, simulator, settings["database"],
                            settings["capture_instance"], retries=0,
                            **{k: placed(v, folder / command) for k, v in settings.items()
                               if k not in ("database", "capture_instance")})
        code, output = pipeline.run(command)
        if code != case.exit:
            wrong.append(f"{command} ended with {code} instead of {case.exit}:\n{output}")
        wrong += [f"{command} says {text!r}:\n{output}" for text in case.keeps_quiet if text in output]
        if case.code and not any(code in output for code in (case.code, *case.accepts)):
            wrong.append(f"{command} does not say {case.code}:\n{output}")
        wrong += [f"{command} does not say {text!r}:\n{output}" for text in case.says if text not in output]
        kept = [(path, path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
        for where, data in [(f"{command}'s output", output.encode()), *kept]:
            if any(form in data for form in forms(pipeline.password)):
                wrong.append(f"the password is in {where}")
    return wrong


def ends(program: pathlib.Path, folder: pathlib.Path, simulator: Simulator) -> list[tuple[str, list[str]]]:
    """What ends a continuous run from outside ends it as SIGTERM does: exit code 0, between batches."""
    results = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "a reader that went away"):
        pipeline = Pipeline(program, folder / name, simulator, "faults", "dbo_orders", f"ends {name}",
                            trigger="continuous")
        process = pipeline.start()
        while (line := process.stdout.readline()) and "up to date" not in line:
            pass
        wrong = [] if line else ["it was never up to date"]
        if name.startswith("SIG"):
            process.send_signal(getattr(signal, name))
        else:
            process.stdout.close()
            simulator.run("INSERT dbo.orders VALUES (2, N'b')")
            simulator.capture()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:
            wrong.append(f"it ended with {process.returncode}")
        results.append((f"ended by {name}", wrong))
    return results


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
            for number, case in enumerate([*cases(folder / "sim"), *option_cases()]):
                wrong = try_case(args.program, folder / str(number), simulator, case)
                passed += not wrong
                failed += bool(wrong)
                for text in wrong:
                    print(f"FAILED {case.name}: {text}")
            for what, wrong in ends(args.program, folder / "ends", simulator):
                passed += not wrong
                failed += bool(wrong)
                for text in wrong:
                    print(f"FAILED {what}: {text}")
        finally:
            simulator.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
