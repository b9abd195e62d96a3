"""Serves the live page until a signal stops it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from pathlib import Path

from google.cloud.spanner_v1.database import Database

from watcher.cli.actions.interruption import parse_interval, until_interrupted
from watcher.cli.logs import configure_logging
from watcher.cli.output import CONSOLE
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import consumers_table
from watcher.consumers.states import Command
from watcher.errors import ConfigurationError
from watcher.overview.observer import Observer
from watcher.page.access import Access, is_loopback, make_token
from watcher.page.app import Operations, PageApp, SendCommand
from watcher.page.feed import Feed
from watcher.page.server import PageServer
from watcher.settings.fields import duration_seconds
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect

TOKEN_LENGTH_MIN = 16
EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What to serve and where. ``every`` and ``staleness`` are durations, such as 5s."""

    database: str
    host: str
    port: int
    control: bool
    token_file: Path | None
    every: str
    staleness: str
    positions_table: str


def serve_page(request: PageRequest) -> None:
    """Reads once, so that errors end the command, then serves until a signal."""
    configure_logging("logfmt", verbose=False)
    every, staleness = parse_interval(request.every), duration_seconds(request.staleness)
    token = choose_token(request)
    address = DatabaseAddress.parse(request.database)
    database = connect(address)
    observer = Observer(database, address, request.positions_table, staleness)
    feed = Feed(observer.read, every)
    send = make_sender(database, request.positions_table) if request.control else None
    app = PageApp(feed, Access(token), Operations(observer.count_exactly, send), every)
    server = PageServer(app, request.host, request.port)
    feed.read()
    server.start()
    with until_interrupted():
        print_address(request, server.port, token)
        while True:
            time.sleep(every)
            feed.refresh()


def choose_token(request: PageRequest) -> str | None:
    """The token that is asked for: that of the file, else a random one where others may reach the
    page, else none. Raises ConfigurationError for a short one."""
    if request.token_file is not None:
        token = request.token_file.read_text().strip()
        if len(token) < TOKEN_LENGTH_MIN or not token.isascii() or not token.isprintable():
            raise ConfigurationError(
                f"{request.token_file} must hold one token of at least {TOKEN_LENGTH_MIN} ASCII"
                " characters; make one with: openssl rand -hex 32"
            )
        return token
    return None if is_loopback(request.host) else make_token()


def make_sender(database: Database, positions_table: str) -> SendCommand:
    """What sends a command to a consumer, as ``ctl`` does."""
    consumers = Consumers(database, consumers_table(positions_table))

    def send(consumer: str, command: Command) -> None:
        consumers.ask(consumer, command)

    return send


def print_address(request: PageRequest, port: int, token: str | None) -> None:
    """Prints where the page is. A token of a file is not printed: who has it knows it."""
    host = socket.gethostname() if request.host in EVERYWHERE else request.host
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    shown = f"?token={token}" if token is not None and request.token_file is None else ""
    CONSOLE.print(f"the page of {request.database} is at http://{host}:{port}/{shown}")
    if not is_loopback(request.host):
        CONSOLE.print(
            "others can reach it, without encryption: put it behind a proxy with TLS, or use"
            f" 'ssh -L {port}:localhost:{port}' and --host 127.0.0.1"
        )
    CONSOLE.print("Ctrl-C stops it")
