"""The page of a database: one thread reads, others answer, until the process ends."""

from __future__ import annotations

import logging
import socket
import threading
import time
from pathlib import Path

from google.cloud.spanner_v1.database import Database

from watcher.consumers.audit import Audit, describe_operator
from watcher.consumers.leases import Consumers
from watcher.consumers.states import Command
from watcher.model.errors import ConfigurationError
from watcher.model.log_events.running import PAGE_STARTED
from watcher.overview.copies import make_proof_reader, no_proofs
from watcher.overview.observer import Observer
from watcher.overview.page.access import Access, is_loopback, make_token
from watcher.overview.page.app import Operations, PageApp, SendCommand
from watcher.overview.page.feed import Feed
from watcher.process.http_server import HttpServer
from watcher.process.text_files import read_text_file
from watcher.settings.sections import PageConfig
from watcher.settings.watcher import WatchConfig
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect

LOG = logging.getLogger("watcher.page")
TOKEN_LENGTH_MIN = 16
EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})


class PageService:
    """Listens from now on; ``start`` reads and answers."""

    def __init__(
        self,
        config: PageConfig,
        address: DatabaseAddress,
        positions_table: str,
        folder: str | None = None,
    ) -> None:
        """``folder``: that of a replica, of whose copies it shows what is proved. Raises
        ConfigurationError for an address that cannot be listened on, or a token that can be
        guessed."""
        self._config = config
        self._token = choose_token(config)
        database = connect(address)
        proofs = no_proofs if folder is None else make_proof_reader(folder)
        observer = Observer(
            database, address, positions_table, config.staleness, read_proofs=proofs
        )
        self._feed = Feed(observer.read, config.every)
        send = make_sender(database, positions_table) if config.control else None
        operations = Operations(observer.count_exactly, send)
        app = PageApp(self._feed, Access(self._token), operations, config.every)
        self._server = HttpServer(app, config.host, config.port, "page")

    @property
    def link(self) -> str:
        """The address to open. It has the token when that is a random one: whoever has the file of
        another knows it. For a terminal alone, see ``hide_token``."""
        random = self._token is not None and self._config.token_file is None
        shown = f"?token={self._token}" if random else ""
        return f"http://{self._shown_host}:{self.port}/{shown}"

    @property
    def port(self) -> int:
        """The port."""
        return self._server.port

    @property
    def _shown_host(self) -> str:
        host = self._config.host
        host = socket.gethostname() if host in EVERYWHERE else host
        return f"[{host}]" if ":" in host and not host.startswith("[") else host

    def read(self) -> None:
        """Reads now. Raises what the client and watcher raise."""
        self._feed.read()

    def start(self) -> None:
        """Answers, and reads again and again, in threads of its own."""
        threading.Thread(target=self._read_forever, name="page-feed", daemon=True).start()
        self._server.start()
        PAGE_STARTED.log(LOG, port=self.port, host=self._shown_host)

    def _read_forever(self) -> None:
        while True:
            self._feed.refresh()
            time.sleep(self._config.every)


class WatcherPage:
    """The page beside a watcher: lasts as long as its process, over all its runs."""

    def __init__(self, config: WatchConfig) -> None:
        self._config = config
        self._service: PageService | None = None

    def serve(self) -> None:
        """Serves it from now on where it is configured. Raises as ``PageService``."""
        if self._config.page is None or self._service is not None:
            return
        config = self._config
        folder = None if config.replica is None else config.replica.folder
        service = PageService(self._config.page, config.address, config.positions.table, folder)
        service.start()
        self._service = service

    @property
    def link(self) -> str | None:
        """As ``PageService.link``; None where there is no page."""
        return self._service.link if self._service is not None else None


def choose_token(config: PageConfig) -> str | None:
    """The token that is asked for: that of the file, else a random one where others may reach the
    page, or where it takes commands, else none. Raises ConfigurationError for a short one."""
    if config.token_file is not None:
        return read_token(config.token_file)
    return None if is_loopback(config.host) and not config.control else make_token()


def read_token(path: Path) -> str:
    """The token in a file. Raises ConfigurationError for a short one."""
    token = read_text_file(path).strip()
    if len(token) < TOKEN_LENGTH_MIN or not token.isascii() or not token.isprintable():
        raise ConfigurationError(
            f"{path} must hold one token of at least {TOKEN_LENGTH_MIN} ASCII characters; make one"
            " with: openssl rand -hex 32"
        )
    return token


def hide_token(link: str) -> tuple[str, str | None]:
    """An address for a log or a file, which others may read, and what to do where its token is
    hidden."""
    address, _, token = link.partition("?")
    if not token:
        return address, None
    return address, (
        f"the page at {address} asks for a random token, which is shown on a terminal alone: start"
        " it with --token-file, or set token_file in [page]"
    )


def make_sender(database: Database, positions_table: str) -> SendCommand:
    """What sends a command to a consumer, as ``ctl`` does."""
    consumers = Consumers(database, positions_table)
    audit = Audit(database, positions_table, f"page of {describe_operator()}")

    def send(consumer: str, command: Command) -> None:
        with audit.record(str(command), consumer):
            consumers.ask(consumer, command)

    return send
