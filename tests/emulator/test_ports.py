"""Ports of servers that their clients outlive."""

from __future__ import annotations

import random
import socket

import pytest

from emulator import ports
from emulator.ports import find_port, is_free, read_ephemeral_least
from emulator.server import start


def test_a_server_takes_no_port_that_the_system_hands_out() -> None:
    with start() as server, socket.create_server(("127.0.0.1", 0)) as other:
        taken = int(server.address.rpartition(":")[2])
        assert 0 < taken < read_ephemeral_least() <= other.getsockname()[1]


def test_a_port_that_is_taken_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        assert not is_free("127.0.0.1", taken)
        monkeypatch.setattr(ports.RANDOMNESS, "sample", lambda *_: [taken])
        assert find_port() == 0


def test_processes_that_seed_their_randomness_alike_choose_other_ports() -> None:
    state = random.getstate()
    random.seed(1)
    first = [find_port() for _ in range(5)]
    random.seed(1)
    second = [find_port() for _ in range(5)]
    random.setstate(state)
    assert first != second
