"""Clients that are slow, many, or read nothing: others are served, and theirs end."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fixtures.pace import allow

from watcher.process import http_server
from watcher.process.http_server import (
    ADDRESS_CONNECTIONS_MAX,
    CONNECTIONS_MAX,
    THREADS,
    HttpServer,
)
from watcher.runners.metrics import MetricFamilies

HALF = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


class App:
    """Answers at once, or when it is let; what it answers may be long."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.blocked = threading.Semaphore(0)
        self.body = b"ok"

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            self.blocked.release()
            assert self.go_on.wait(allow(60))
        start("200 OK", [("Content-Length", str(len(self.body)))])
        return [self.body]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def port(app: App) -> int:
    server = HttpServer(app, "127.0.0.1", 0, "page")
    server.start()
    return server.port


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(port: int, sockets: ExitStack, host: str = "127.0.0.1") -> socket.socket:
    """A connection from an address of loopback."""
    made = socket.create_connection(
        ("127.0.0.1", port), timeout=allow(60), source_address=(host, 0)
    )
    return sockets.enter_context(made)


def get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=allow(60))
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_half_requests_keep_nobody_else_out(port: int, sockets: ExitStack) -> None:
    """More than the server takes in all, from one address: that of who asks, too."""
    for _ in range(CONNECTIONS_MAX + 10):
        connect(port, sockets).sendall(HALF)
    for path in ("/healthz", "/", "/metrics"):
        assert get(port, path) == 200


def test_half_requests_from_many_addresses_keep_nobody_out(port: int, sockets: ExitStack) -> None:
    for number in range(CONNECTIONS_MAX + 10):
        connect(port, sockets, f"127.0.0.{2 + number % 8}").sendall(HALF)
    assert get(port, "/healthz") == 200


def test_an_address_holds_a_limited_number_of_connections(port: int, sockets: ExitStack) -> None:
    held = [connect(port, sockets) for _ in range(ADDRESS_CONNECTIONS_MAX + 5)]
    for each in held[:5]:
        assert each.recv(1) == b"", "the one that has waited longest has ended"
    other = connect(port, sockets, "127.0.0.9")
    other.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert other.recv(12) == b"HTTP/1.1 200"


def test_a_request_that_drips_ends_at_its_deadline(
    port: int, sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS_MAX", 0.3)
    slow = connect(port, sockets)
    slow.sendall(HALF)
    slow.settimeout(0.05)
    for _ in range(int(allow(60) / 0.05)):
        try:
            slow.sendall(b"x")
            if slow.recv(1) == b"":
                return
        except TimeoutError:
            continue
        except OSError:
            return
    raise AssertionError("it never ends")


def test_an_answer_that_nobody_reads_ends(
    app: App, port: int, sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.body = b"x" * 10_000_000
    slow = connect(port, sockets)
    monkeypatch.setattr(http_server, "ANSWER_SECONDS_MAX", 0.3)
    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    end = threading.Event()
    for _ in range(int(allow(60) / 0.2)):
        end.wait(0.2)
        if "ESTAB" not in state_of(port, slow.getsockname()[1]):
            return
    raise AssertionError("the server still holds the connection")


def state_of(port: int, client: int) -> str:
    """The state of the server's end of a connection, as Linux has it."""
    for line in open("/proc/net/tcp"):  # noqa: SIM115
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[2].endswith(f":{client:04X}"):
            return "ESTAB" if fields[3] == "01" else fields[3]
    return "gone"


def test_probes_wait_for_nobody(app: App, port: int, sockets: ExitStack) -> None:
    for _ in range(THREADS + 2):
        connect(port, sockets).sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for _ in range(THREADS):
        assert app.blocked.acquire(timeout=allow(60))
    try:
        assert get(port, "/healthz") == 200
        assert get(port, "/readyz") == 200
    finally:
        app.go_on.set()


def test_metrics_are_served_with_the_same_limits(sockets: ExitStack) -> None:
    """Each half request had a thread and a descriptor of the watcher's for ever."""
    families = MetricFamilies()
    port = families.serve("127.0.0.1", 0)
    threads = threading.active_count()
    for _ in range(CONNECTIONS_MAX + 100):
        connect(port, sockets).sendall(HALF)
    assert get(port, "/metrics") == 200
    assert threading.active_count() <= threads + 1
