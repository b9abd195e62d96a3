"""An embedded Spanner: the real gRPC API on top of SQLite.

``start`` runs a server inside this process, ``spawn`` runs one in a process of its own.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.data_directories import StartError
    from emulator.errors import SpannerError
    from emulator.faults import Faults
    from emulator.process import ServerProcess, spawn
    from emulator.server import Server, start

__all__ = ["Faults", "Server", "ServerProcess", "SpannerError", "StartError", "spawn", "start"]

MODULES = {
    "Faults": "faults",
    "Server": "server",
    "ServerProcess": "process",
    "SpannerError": "errors",
    "StartError": "data_directories",
    "spawn": "process",
    "start": "server",
}
"""Where each public name is defined."""


def __getattr__(name: str) -> object:
    """Loads a public name at its first use: ``spawn`` alone does not load the server."""
    if name not in MODULES:
        raise AttributeError(f"module 'emulator' has no attribute {name!r}")
    return resolve_name(f"emulator.{MODULES[name]}:{name}")
