"""Attacks that were tried on the page, each with what has to come of it. No database is needed: the
page answers from what it has read, and here it has read nothing."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from fixtures.pace import allow

from watcher.consumers.states import Command
from watcher.model.errors import TableNotFoundError
from watcher.overview.observer import ExactCounts
from watcher.overview.page.access import Access
from watcher.overview.page.app import Operations, PageApp
from watcher.overview.page.feed import Feed
from watcher.process.http_server import HttpServer

TOKEN = "a-token-that-nobody-guesses"
BEARER = f"Bearer {TOKEN}"
DEEP = "[" * 20_000 + "]" * 20_000


def count(table: str) -> ExactCounts:
    raise TableNotFoundError(f"there is no table {table}")


class Sent(list[tuple[str, Command]]):
    """The commands that got through."""

    def send(self, consumer: str, command: Command) -> None:
        self.append((consumer.encode().decode(), command))


@dataclass(frozen=True)
class Target:
    """A page on loopback, and the commands that it has sent."""

    port: int
    sent: Sent

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, str, Mapping[str, str]]:
        """Names of headers have underscores for hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=allow(30))
        if "protocol" in headers:
            connection._http_vsn_str = headers.pop("protocol")  # type: ignore[attr-defined]
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if path == "/api/commands":
            named.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def serve(token: str | None) -> Target:
    sent = Sent()
    feed = Feed(pytest.fail, 5.0)
    app = PageApp(feed, Access(token), Operations(count, sent.send), 5.0)
    server = HttpServer(app, "127.0.0.1", 0, "page")
    server.start()
    return Target(server.port, sent)


@pytest.fixture(scope="module")
def open_page() -> Target:
    """Without a token."""
    return serve(None)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Target]:
    """With one; no command may have come through."""
    target = serve(TOKEN)
    yield target
    assert target.sent == []


FORWARDED = [
    {"X_Forwarded_For": "203.0.113.9"},
    {"X_Forwarded_Proto": "https"},
    {"X_Forwarded_Host": "page.example.com"},
    {"Forwarded": "for=203.0.113.9"},
    {"Via": "1.1 proxy"},
    {"X_Real_IP": "203.0.113.9"},
    {"protocol": "HTTP/1.0"},
]


@pytest.mark.parametrize("headers", FORWARDED, ids=lambda headers: next(iter(headers)))
@pytest.mark.parametrize("path", ["/", "/api/status", "/metrics"])
def test_without_a_token_what_a_proxy_sends_on_is_refused(
    open_page: Target, headers: dict[str, str], path: str
) -> None:
    """nginx sends its own Host, which is a name of loopback, and HTTP/1.0."""
    status, text, _ = open_page.ask("GET", path, **headers)
    assert status == 403
    assert "--token-file" in text


@pytest.mark.parametrize("headers", FORWARDED, ids=lambda headers: next(iter(headers)))
def test_with_a_token_the_page_may_be_behind_a_proxy(
    guarded: Target, headers: dict[str, str]
) -> None:
    assert guarded.ask("GET", "/api/status", Authorization=BEARER, **headers)[0] == 200
    assert guarded.ask("GET", "/api/status", **headers)[0] == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "[", "", "127.0.0.1@evil"]
)
def test_a_name_that_a_site_gives_this_machine_is_refused(open_page: Target, host: str) -> None:
    assert open_page.ask("GET", "/api/status", Host=host)[0] in (400, 403)


ORIGINS = ["http://evil.example", "null", "http://[", "http://127.0.0.1", "", "//", "http://[::1"]


@pytest.mark.parametrize("origin", ORIGINS)
def test_another_origin_sends_nothing(open_page: Target, guarded: Target, origin: str) -> None:
    body = json.dumps({"table": "Singers"})
    assert open_page.ask("POST", "/api/count", body, Origin=origin)[0] == 403
    assert guarded.ask("POST", "/api/count", body, Origin=origin)[0] == 401


BODIES = [
    DEEP,
    '{"consumer": ' + DEEP + "}",
    '{"consumer": "\\ud800", "command": "stop"}',
    '{"consumer": "me", "command": "\\ud800"}',
    "",
    "{",
    "null",
    "NaN",
    "1" * 5_000,
    "\0",
    '{"consumer": null, "command": "stop"}',
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_what_is_not_a_command_is_a_bad_request(guarded: Target, body: str) -> None:
    status, text, _ = guarded.ask("POST", "/api/commands", body, Authorization=BEARER)
    assert status == 400
    assert json.loads(text)["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?" + "a=1&" * 1_000, 400),
        ("/?token=%ed%a0%80", 401),
        ("/../../etc/passwd", 401),
        ("/%2e%2e/page.html", 401),
        ("/%ff%00", 401),
        ("/" + "a" * 20_000, 431),
        ("//evil.example/", 401),
    ],
    ids=range(7),
)
def test_odd_addresses_are_refused(guarded: Target, path: str, status: int) -> None:
    assert guarded.ask("GET", path)[0] == status


def test_a_body_that_is_too_long_is_refused(guarded: Target) -> None:
    assert guarded.ask("POST", "/api/count", "x" * 70_000, Authorization=BEARER)[0] == 413


@pytest.mark.parametrize("given", ["wrong", "", TOKEN[:-1], TOKEN + "x", "\xff"])
def test_wrong_tokens_are_refused(guarded: Target, given: str) -> None:
    assert guarded.ask("GET", "/api/status", Authorization=f"Bearer {given}")[0] == 401
    assert guarded.ask("GET", "/api/status", Cookie=f"spanner_watcher_page={given}")[0] == 401


def test_the_cookie_is_of_no_use_elsewhere(guarded: Target) -> None:
    """Browsers send cookies to every port of a host, where another program may listen."""
    status, _, headers = guarded.ask("GET", f"/?token={TOKEN}")
    assert status == 303
    cookie, _, attributes = headers["Set-Cookie"].partition("; ")
    room = headers["Location"]
    assert TOKEN not in headers["Set-Cookie"] + room
    assert f"Path={room};" in attributes
    assert "HttpOnly" in attributes
    assert len(room) > 30
    assert guarded.ask("GET", f"{room}api/status", Cookie=cookie)[0] == 200
    # Whoever learns the cookie does not know the path, or the token; who learns the path has none.
    assert guarded.ask("GET", "/api/status", Cookie=cookie)[0] == 401
    assert guarded.ask("GET", f"{room}api/status")[0] == 401
    value = cookie.partition("=")[2]
    assert guarded.ask("GET", "/api/status", Authorization=f"Bearer {value}")[0] == 401
    assert guarded.ask("GET", f"/?token={value}")[0] == 401
    commands = json.dumps({"consumer": "me", "command": "stop"})
    assert guarded.ask("POST", f"{room}api/commands", commands, Cookie=cookie)[0] == 403
