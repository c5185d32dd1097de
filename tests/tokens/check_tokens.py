"""Logins by access token: the ways to get one, against a stand-in of Entra ID's endpoints.

The stand-in speaks HTTP on this machine (Microsoft's "Microsoft identity platform and the OAuth 2.0
client credentials flow", "How to use managed identities for Azure resources on an Azure VM to acquire an
access token", and App Service's "REST endpoint reference"). The server that takes the token is the wire of
the simulator in front of a fixed table, which takes one token and no other; its count of logins tells
whether the token arrived. No output may hold a secret. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import dataclasses
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

TOKEN = "token"
SECRET = "Application-canary-5"
RESOURCE = "https://database.windows.net/"


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers as the three endpoints do; `mode` of the server makes it fail."""

    def answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def granted(self) -> None:
        mode = self.server.mode
        if mode == "busy":
            self.answer(429, {"error": "too_many_requests"})
        elif mode == "no identity":
            self.answer(400, {"error": "invalid_request", "error_description": f"no identity {SECRET}"})
        elif mode == "no token":
            self.answer(200, {"token_type": "Bearer"})
        elif mode == "no json":
            self.answer_text("<html>")
        else:
            self.server.granted += 1
            self.answer(200, {"access_token": TOKEN, "expires_in": "3599" if self.command == "GET" else 3599})

    def answer_text(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self) -> None:  # noqa: N802
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        wanted = {"resource": RESOURCE, "api-version": "2018-02-01"}
        if url.path == "/msi/token":
            wanted["api-version"] = "2019-08-01"
            right = self.headers["X-IDENTITY-HEADER"] == "header-1"
        else:
            right = url.path == "/metadata/identity/oauth2/token" and self.headers["Metadata"] == "true"
        if self.server.client_id:
            wanted["client_id"] = self.server.client_id
        if not right or asked != wanted:
            self.answer(400, {"error": "bad_request_" + url.path.strip("/").replace("/", "_")})
        else:
            self.granted()

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = dict(urllib.parse.parse_qsl(body))
        if self.path != "/tenant-1/oauth2/v2.0/token" or asked.get("scope") != RESOURCE + ".default" \
                or asked.get("grant_type") != "client_credentials" or asked.get("client_id") != "app-1":
            self.answer(400, {"error": "bad_request"})
        elif asked.get("client_secret") != SECRET:
            self.answer(401, {"error": "invalid_client", "error_codes": [7000215],
                              "error_description": f"Invalid client secret {asked.get('client_secret')}"})
        else:
            self.granted()

    def log_message(self, *_) -> None:
        pass


@dataclasses.dataclass
class Case:
    name: str
    code: str  # Of the catalogue; empty: the server takes the login.
    connection: str = ""
    options: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    mode: str = ""
    client_id: str = ""
    says: tuple[str, ...] = ()
    server: str = "required"  # Of SERVERS.


# TLS, and what FEDAUTHINFO says ([MS-TDS] 2.2.7.12): where tokens come from, and what they are for.
SERVERS = {
    "required": ("required", "https://login.windows.net/tenant-1", RESOURCE),
    "none": ("none", "https://login.windows.net/tenant-1", RESOURCE),
    "other tenant": ("required", "https://login.windows.net/tenant-2", RESOURCE),
    "other service": ("required", "https://login.windows.net/tenant-1", "https://management.azure.com/"),
    "no tenant": ("required", "https://login.windows.net/tenant-1/..%2f", RESOURCE),
}


def cases(endpoint: str, token_file: pathlib.Path) -> list[Case]:
    msi = ";Authentication=ActiveDirectoryMsi"
    at_metadata = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": endpoint}
    at_platform = {"IDENTITY_ENDPOINT": endpoint + "/msi/token", "IDENTITY_HEADER": "header-1"}
    return [
        Case("an access token", "", options={"accessToken": {"env": "GOOD_TOKEN"}}),
        Case("a token of another server", "MC2001", options={"accessToken": {"env": "OTHER_TOKEN"}}),
        Case("a token is not sent in clear", "MC1006", ";Encrypt=optional",
             {"accessToken": {"env": "GOOD_TOKEN"}}, says=("TLS off",)),
        Case("a command", "", options={"tokenProvider": f"command:cat {token_file}"}),
        Case("a file", "", options={"tokenProvider": f"file:{token_file}"}),
        Case("a file below the pipeline's folder", "", options={"tokenProvider": "file:../token"}),
        Case("a command that fails", "MC2007", options={"tokenProvider": "command:exit 4"}, says=("with 4",)),
        Case("a command that prints nothing", "MC2008", options={"tokenProvider": "command:true"}),
        Case("a file that is not there", "MC2008", options={"tokenProvider": "file:/no/such/token"}),
        Case("a Python function", "MC6002", options={"tokenProvider": "sql_token:token"}, says=("Spark",)),
        Case("the machine's identity", "", msi, environment=at_metadata),
        Case("an identity of the user's", "", msi, {"user": "id-7"}, at_metadata, client_id="id-7"),
        Case("the platform's identity", "", msi, environment=at_platform),
        Case("no identity on this machine", "MC2008", msi, environment=at_metadata, mode="no identity",
             says=("invalid_request",)),
        Case("an endpoint that is busy", "MC2007", msi, environment=at_metadata, mode="busy", says=("status=429",)),
        Case("an answer without a token", "MC2007", msi, environment=at_metadata, mode="no token"),
        Case("an answer that is no JSON", "MC2007", msi, environment=at_metadata, mode="no json"),
        Case("an endpoint that is not there", "MC2007", msi,
             environment={"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:1"}),
        Case("an identity and a password", "MC6005", msi, {"password": {"env": "APP_SECRET"}}),
    ]


def application_cases(endpoint: str) -> list[Case]:
    msi = ";Authentication=ActiveDirectoryMsi"
    app = ";Authentication=ActiveDirectoryServicePrincipal"
    at_entra = {"AZURE_AUTHORITY_HOST": endpoint}
    secret = {"user": "app-1@tenant-1", "password": {"env": "APP_SECRET"}}
    return [
        Case("an application", "", app, secret, at_entra),
        Case("an application, its tenant in the environment", "", app, secret | {"user": "app-1"},
             at_entra | {"AZURE_TENANT_ID": "tenant-1"}),
        Case("an application inside the string", "", app + f";UID=app-1@tenant-1;PWD={{{SECRET}}}", {}, at_entra),
        Case("an application whose tenant the server tells", "", app, secret | {"user": "app-1"}, at_entra),
        Case("an application with an empty tenant", "MC6002", app, secret | {"user": "app-1@"}, at_entra,
             says=("id@tenant",)),
        Case("a server of another tenant", "MC2008", app, secret | {"user": "app-1"}, at_entra, server="other tenant",
             says=("status=400",)),
        Case("a server that asks for another service's token", "MC2008", app, secret | {"user": "app-1"}, at_entra,
             server="other service", says=("spn=https://management.azure.com/",)),
        Case("a server whose tenant is none", "MC2008", app, secret | {"user": "app-1"}, at_entra, server="no tenant",
             says=("sts_url=",)),
        Case("a token that is brought later is not sent in clear", "MC1006", app + ";Encrypt=optional",
             secret | {"user": "app-1"}, at_entra, says=("TLS off",), server="none"),
        Case("a wrong secret, told in the middle of a login", "MC2008", app,
             {"user": "app-1", "password": {"env": "OTHER_TOKEN"}}, at_entra, says=("invalid_client AADSTS7000215",)),
        Case("a wrong secret of an application", "MC2008", app, secret | {"password": {"env": "OTHER_TOKEN"}}, at_entra,
             says=("invalid_client AADSTS7000215",)),
        Case("Entra ID by http elsewhere", "MC2008", app, secret,
             {"AZURE_AUTHORITY_HOST": "http://login.example"}, says=("https",)),
        Case("a host that begins as this machine", "MC2008", app, secret,
             {"AZURE_AUTHORITY_HOST": "http://127.0.0.1.login.example"}, says=("https",)),
        Case("a host behind a user's name", "MC2008", app, secret,
             {"AZURE_AUTHORITY_HOST": "http://localhost:1@login.example"}, says=("https",)),
        Case("a place of another scheme", "MC2008", msi, environment={"IDENTITY_ENDPOINT": "unix:/run/token"},
             says=("neither https nor http",)),
        Case("a port that is none", "MC2008", app, secret, {"AZURE_AUTHORITY_HOST": "https://127.0.0.1:99999999999"},
             says=("no host and port",)),
        Case("another kind", "MC6006", ";Authentication=ActiveDirectoryInteractive", {}, says=("ActiveDirectoryInteractive",)),
    ]


def toml(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {json.dumps(text)}" for key, text in value.items()) + " }"
    return json.dumps(value)


class FixedServer:
    def __init__(self, program: pathlib.Path, folder: pathlib.Path, name: str) -> None:
        self.certificates = folder / f"certificates-{name}".replace(" ", "-")
        tls, *says = SERVERS[name]
        self.process = subprocess.Popen([program, "0", tls, self.certificates, *says], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def logins(self) -> int:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(re.search(r"logins (\d+)", self.process.stdout.readline())[1])

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def try_case(case: Case, args, folder: pathlib.Path, servers: dict[str, FixedServer], endpoint) -> list[str]:
    server = servers["none" if "TLS off" in case.says else case.server]
    connection = case.connection
    if "Encrypt=" not in connection:
        connection += f";Encrypt=yes;CAFile={server.certificates}/ca.pem"
    folder.mkdir()
    file = folder / "pipeline.toml"
    stream = {"captureInstance": "dbo_x", "target": f"{folder}/bronze", "app_id": "tokens", "checkpoint": f"{folder}/c",
              "retries": 0, "connectTimeout": 20, "connectionString": f"Server=127.0.0.1,{server.port}" + connection,
              **case.options}
    file.write_text("[[stream]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in stream.items()))
    endpoint.mode, endpoint.client_id = case.mode, case.client_id
    before = server.logins()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "IDENTITY_"))}
    environment |= {"GOOD_TOKEN": TOKEN, "OTHER_TOKEN": "Other-canary-8", "APP_SECRET": SECRET, **case.environment}
    run = subprocess.run([args.program, "check", file], capture_output=True, text=True, env=environment, timeout=120)
    output = run.stdout + run.stderr
    wrong = []
    taken = server.logins() - before
    if case.code:
        if case.code not in output:
            wrong.append(f"does not say {case.code}")
        if run.returncode != (75 if case.code == "MC2007" else 78):
            wrong.append(f"ended with {run.returncode}")
    elif taken < 1 or "MC2001" in output:
        wrong.append("the server did not take the login")
    wrong += [f"does not say {text!r}" for text in case.says if text not in output and text != "TLS off"]
    if SECRET in output or "Other-canary-8" in output:
        wrong.append("shows a secret")
    return [f"{text}:\n{output}" for text in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--server", type=pathlib.Path, required=True, help="build/release/tests/fixed_server")
    args = parser.parse_args()
    endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    endpoint.mode, endpoint.client_id, endpoint.granted = "", "", 0
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-tokens-") as name:
        folder = pathlib.Path(name)
        (folder / "token").write_text(TOKEN + "\n")
        servers = {name: FixedServer(args.server, folder, name) for name in SERVERS}
        try:
            at = f"http://127.0.0.1:{endpoint.server_port}"
            for number, case in enumerate([*cases(at, folder / "token"), *application_cases(at)]):
                wrong = try_case(case, args, folder / str(number), servers, endpoint)
                passed += not wrong
                failed += bool(wrong)
                for text in wrong:
                    print(f"FAILED {case.name}: {text}")
        finally:
            for server in servers.values():
                server.stop()
    if endpoint.granted != 7:
        failed += 1
        print(f"FAILED the endpoint gave {endpoint.granted} tokens")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
