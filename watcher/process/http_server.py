"""An HTTP server that slow, idle and greedy clients cannot take from others; by waitress.

A request has a deadline from the moment its client connects, an answer has one to be read. One
address holds a limited number of connections; whoever comes then takes the place of the one that
has waited longest. What probes ask has a thread of its own. Deadlines follow the monotonic clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from watcher.model.errors import ConfigurationError

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

THREADS = 6
CONNECTIONS_MAX = 200
ADDRESS_CONNECTIONS_MAX = 64
REQUEST_SECONDS_MAX = 10.0
"""From the connection, or the answer before, to the end of a request; idle connections end, too."""
ANSWER_SECONDS_MAX = 60.0
HEADER_BYTES_MAX = 16_384
BODY_BYTES_MAX = 65_536
CHECK_SECONDS = 1.0
PROBES = frozenset({"/healthz", "/readyz"})
"""Paths whose answers wait for nothing, and for nobody else's."""


class Connection(HTTPChannel):  # type: ignore[misc]  # waitress has no annotations
    """A connection that knows how long its client has been slow."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.waiting_since = time.monotonic()
        super().__init__(*arguments, **named)

    def service(self) -> None:
        """Answers, in a thread of the server's."""
        try:
            super().service()
        finally:
            self.waiting_since = time.monotonic()

    @property
    def is_waiting(self) -> bool:
        """True while it is for the client to send or to read."""
        return not self.requests

    def is_late(self, now: float) -> bool:
        """Whether the client was slower than it may be."""
        limit = ANSWER_SECONDS_MAX if self.total_outbufs_len else REQUEST_SECONDS_MAX
        return self.is_waiting and now - self.waiting_since > limit


class Listener(TcpWSGIServer):  # type: ignore[misc]  # waitress has no annotations
    """Accepts connections on one address."""

    channel_class = Connection

    def __init__(self, *arguments: Any, probes: ThreadedTaskDispatcher, **named: Any) -> None:
        self._probes = probes
        self._next_check = 0.0
        super().__init__(*arguments, **named)

    def readable(self) -> bool:
        """Called before each wait for something to happen."""
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            for connection in list(self.active_channels.values()):
                if connection.is_late(now):
                    connection.handle_close()
        return bool(super().readable())

    def handle_accept(self) -> None:
        """Takes a connection, and ends another one where there are too many."""
        super().handle_accept()
        held = Counter(each.addr[0] for each in self.active_channels.values())
        if not held:
            return
        ((fullest, count),) = held.most_common(1)
        if count > ADDRESS_CONNECTIONS_MAX or held.total() > CONNECTIONS_MAX:
            mine = [each for each in self.active_channels.values() if each.addr[0] == fullest]
            waiting = [each for each in mine if each.is_waiting]
            if waiting:
                min(waiting, key=lambda each: each.waiting_since).handle_close()

    def add_task(self, task: Connection) -> None:
        """Hands a request to a thread."""
        path = getattr(task.requests[0], "path", None)
        (self._probes if path in PROBES else self.task_dispatcher).add_task(task)


class HttpServer:
    """Listens from now on; ``start`` answers."""

    def __init__(self, app: WsgiApp, host: str, port: int, section: str) -> None:
        """``section`` of the settings names the address. Raises ConfigurationError when it cannot
        be listened on."""
        logging.getLogger("waitress").setLevel(logging.ERROR)
        self._map: dict[int, Any] = {}
        probes, tasks = ThreadedTaskDispatcher(), ThreadedTaskDispatcher()
        try:
            settings = Adjustments(
                host=host.strip("[]"),
                port=port,
                # The limits above come first: this one would keep everybody out.
                connection_limit=2 * CONNECTIONS_MAX,
                max_request_header_size=HEADER_BYTES_MAX,
                max_request_body_size=BODY_BYTES_MAX,
                ident=None,
                # The page refuses what came through a proxy without a token: it has to see it.
                clear_untrusted_proxy_headers=False,
            )
            listeners = [
                Listener(
                    app, self._map, dispatcher=tasks, adj=settings, sockinfo=address, probes=probes
                )
                for address in settings.listen
            ]
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(
                f"cannot listen on {host}, port {port}: {reason}; choose others in [{section}], or"
                " with --host and --port where the command has them"
            ) from error
        tasks.set_thread_count(THREADS)
        probes.set_thread_count(1)
        self.port = int(listeners[0].effective_port)
        self._name = section

    def start(self) -> None:
        """Answers in a thread of its own, until the process ends."""
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        wasyncore.loop(timeout=CHECK_SECONDS, map=self._map, use_poll=True)
