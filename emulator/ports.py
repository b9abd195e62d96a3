"""A free port for a server that its clients outlive."""

from __future__ import annotations

import random
import socket
from pathlib import Path

EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
LEAST_PORT = 10_000
EPHEMERAL_LEAST = 32_768
"""Where the system does not say: Linux's own, the lowest of those in use."""
TRIES = 100
RANDOMNESS = random.SystemRandom()
"""Not ``random``'s own: two processes that have seeded it alike would choose the same ports."""


def find_port(host: str = "127.0.0.1") -> int:
    """A free port below those that the system hands out by itself; 0, which asks the system for
    one, where none was found.

    A server that was killed can have it again, and a client that goes on connecting to it does not
    meet the socket of another process, which the system may have given that very port.
    """
    tried = RANDOMNESS.sample(range(LEAST_PORT, read_ephemeral_least()), TRIES)
    return next((port for port in tried if is_free(host, port)), 0)


def read_ephemeral_least() -> int:
    """The lowest port that the system hands out by itself."""
    if not EPHEMERAL_PORTS.exists():
        return EPHEMERAL_LEAST
    least = int(EPHEMERAL_PORTS.read_text().split()[0])
    return least if least >= LEAST_PORT + TRIES else EPHEMERAL_LEAST


def is_free(host: str, port: int) -> bool:
    """Whether nobody listens at a port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return False
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True
