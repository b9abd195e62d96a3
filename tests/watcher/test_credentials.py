"""Each wrong state of Google's credentials is one line that says what to do; no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import google.oauth2.credentials
import pytest
from fixtures.http_server import HttpServer
from fixtures.wrong_values import run_here

from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import open_client

ADDRESS = "spanner://projects/project/instances/instance/databases/music"
VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
NO_ACCESS = 3
USER = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "t"}
ACCOUNT = {
    "type": "service_account",
    "client_email": "watcher@project.iam.gserviceaccount.com",
    "private_key": "-----BEGIN PRIVATE KEY-----\nno key\n-----END PRIVATE KEY-----\n",
    "token_uri": "http://127.0.0.1:1/token",
}
Answer = tuple[int, dict[str, object]]
asked: list[tuple[str | None, str]] = []
"""The authorization and the body of each call for a token in this test."""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without an emulator, without credentials and outside Google's cloud."""
    for name in ("SPANNER_EMULATOR_HOST", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("PATH", str(tmp_path))


def run_status(address: str = ADDRESS) -> str:
    """What ``status`` says: one line, with the exit code of no access."""
    outcome = run_here(["status", "--database", address])
    assert outcome.code == NO_ACCESS, outcome.err
    (line,) = outcome.err.splitlines()
    assert line.startswith("error: ")
    assert "does not answer" not in line
    return line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "which does not exist"),
        ("", "has no credentials"),
        ("{}", "has no credentials"),
        ("[1]", "has no credentials"),
        ('{"type": "service_account"}', "has no credentials"),
        (json.dumps(ACCOUNT), "has no credentials"),
        (json.dumps({"type": "authorized_user"}), "has no credentials"),
        (json.dumps({"type": "impersonated_service_account"}), "has no credentials"),
        (json.dumps({"type": "external_account"}), "has no credentials"),
    ],
)
def test_a_file_of_credentials_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, words: str
) -> None:
    path = tmp_path / "credentials.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv(VARIABLE, str(path))
    line = run_status()
    assert words in line
    assert f"{VARIABLE} names the file {path}" in line


def test_a_folder_has_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert f"names the file {tmp_path}, which is a folder" in run_status()


def test_no_credentials_at_all() -> None:
    line = run_status()
    assert "no Google Cloud credentials were found: run 'gcloud auth application-default" in line


def test_default_credentials_that_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "gcloud").mkdir()
    (tmp_path / "gcloud" / "application_default_credentials.json").write_text("{}")
    assert "the Application Default Credentials cannot be used (" in run_status()


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Serves answers by the end of the path, instead of Google's endpoint of tokens; its URL."""
    answers: dict[str, Answer] = {}
    asked.clear()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = answers[self.path]
            length = int(self.headers["Content-Length"])
            asked.append((self.headers["Authorization"], self.rfile.read(length).decode()))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HttpServer(Handler)
    monkeypatch.setattr(
        google.oauth2.credentials, "_GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{server.url}/token"
    )

    def serve(**by_path: Answer) -> str:
        answers.update({f"/{name}": answer for name, answer in by_path.items()})
        return server.url

    yield serve
    server.close()


def write_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, object]
) -> Path:
    path = tmp_path / "user.json"
    path.write_text(json.dumps(content))
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def test_a_token_that_has_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: Callable[..., str]
) -> None:
    refused = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    tokens(token=(400, refused))
    path = write_credentials(tmp_path, monkeypatch, dict(USER))
    line = run_status()
    assert f"Google refuses the credentials of the file {path}" in line
    assert "Token has been expired or revoked." in line
    assert "gcloud auth application-default login" in line


EMAIL = "watcher@project.iam.gserviceaccount.com"
DENIED: Answer = (403, {"error": {"code": 403, "message": "Permission 'getAccessToken' denied"}})
GRANTED: Answer = (200, {"accessToken": "theirs", "expireTime": "2100-01-01T00:00:00Z"})


@pytest.fixture
def serve_iam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: Callable[..., str]
) -> Callable[[Answer], str]:
    """Lets IAM answer a user's calls for tokens of a service account; its URL of the account."""

    def serve(answer: Answer) -> str:
        path = f"v1/{EMAIL}:generateAccessToken"
        url = tokens(token=(200, {"access_token": "own", "expires_in": 3600}), **{path: answer})
        monkeypatch.setattr(
            "google.auth.impersonated_credentials.iam._IAM_ENDPOINT",
            f"{url}/v1/{{}}:generateAccessToken",
        )
        write_credentials(tmp_path, monkeypatch, dict(USER))
        return f"{url}/{path}"

    return serve


def check_refusal(line: str) -> None:
    assert (
        f"may not act as the service account {EMAIL} (Permission 'getAccessToken' denied)" in line
    )
    assert "roles/iam.serviceAccountTokenCreator" in line


def test_impersonation_by_a_file_that_is_not_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve_iam: Callable[[Answer], str]
) -> None:
    content: dict[str, object] = {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": serve_iam(DENIED),
        "source_credentials": USER,
    }
    write_credentials(tmp_path, monkeypatch, content)
    check_refusal(run_status())


def test_impersonation_by_an_address_that_is_not_granted(
    serve_iam: Callable[[Answer], str],
) -> None:
    serve_iam(DENIED)
    check_refusal(run_status(f"{ADDRESS}?impersonate={EMAIL}"))


def test_calls_carry_the_token_of_the_service_account(
    monkeypatch: pytest.MonkeyPatch, serve_iam: Callable[[Answer], str]
) -> None:
    """IAM is asked with the user's own token, and for each account between."""
    serve_iam(GRANTED)
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "payer")
    delegate = "first@project.iam.gserviceaccount.com"
    address = DatabaseAddress.parse(f"{ADDRESS}?impersonate={delegate},{EMAIL}")
    credentials = open_client(address, checked=True).credentials
    headers: dict[str, str] = {}
    credentials.before_request(None, "POST", "https://spanner.googleapis.com", headers)
    assert headers["authorization"] == "Bearer theirs"
    assert headers["x-goog-user-project"] == "payer"
    (call,) = [body for authorization, body in asked if authorization == "Bearer own"]
    assert json.loads(call)["delegates"] == [f"projects/-/serviceAccounts/{delegate}"]
