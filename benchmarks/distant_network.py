"""A network in front of a server that is far away: every byte arrives later, in both directions."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple

BLOCK_BYTES = 262_144


class Sent(NamedTuple):
    """Bytes, and when (by the monotonic clock) they arrive; none is the end."""

    arrives_at: float
    part: bytes


class DistantNetwork:
    """Forwards connections to a server. ``address`` is where clients connect; ``round_trip`` is in
    seconds, half of it each way. What is under way does not wait for what was sent before it."""

    def __init__(self, server: str, round_trip: float) -> None:
        host, _, port = server.rpartition(":")
        self._server = host, int(port)
        self._way = round_trip / 2
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name="distance", daemon=True).start()

    def close(self) -> None:
        """Accepts nothing more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._forward(client, server)
                self._forward(server, client)

    def _forward(self, here: socket.socket, there: socket.socket) -> None:
        way: SimpleQueue[Sent] = SimpleQueue()
        for work in (lambda: self._receive(here, way), lambda: deliver(way, there)):
            threading.Thread(target=work, name="distance", daemon=True).start()

    def _receive(self, here: socket.socket, way: SimpleQueue[Sent]) -> None:
        """Takes bytes at once; the end of one side, too, however it ended."""
        with suppress(OSError):
            while part := here.recv(BLOCK_BYTES):
                way.put(Sent(time.monotonic() + self._way, part))
        way.put(Sent(time.monotonic() + self._way, b""))


def deliver(way: SimpleQueue[Sent], there: socket.socket) -> None:
    """Gives bytes on when they arrive, in their order."""
    with suppress(OSError):
        while (sent := way.get()).part:
            time.sleep(max(0.0, sent.arrives_at - time.monotonic()))
            there.sendall(sent.part)
        there.shutdown(socket.SHUT_WR)
