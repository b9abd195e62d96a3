"""The gRPC server that calls come through: a native one where it is installed, else grpcio's."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import grpc

from emulator import limits
from emulator.data_directories import StartError
from emulator.tls import Tls

VARIABLE = "EMBEDDED_SPANNER_TRANSPORT"
OPTIONS = [
    ("grpc.max_receive_message_length", limits.RECEIVED_BYTES_MAX),
    ("grpc.max_send_message_length", limits.MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    # Clients may ask whether the server is there as often as they like; and it asks them.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", limits.KEEPALIVE_SECONDS * 1_000),
    ("grpc.keepalive_timeout_ms", limits.KEEPALIVE_SECONDS * 1_000),
    ("grpc.http2.ping_timeout_ms", limits.KEEPALIVE_SECONDS * 1_000),
    ("grpc.http2.max_pings_without_data", 0),
]

Handlers = Mapping[str, "grpc.RpcMethodHandler[Any, Any]"]


class Transport(StrEnum):
    """What does the work of HTTP/2 and gRPC: grpcio, or pygrpc-native (Rust, outside the GIL)."""

    GRPCIO = "grpcio"
    NATIVE = "native"


def choose_transport(tls: bool) -> Transport:
    """That of the environment; without it the native one, where it is installed and the port speaks
    no TLS. Raises ValueError for one that is none, or that is not installed."""
    installed = find_spec("pygrpc_native") is not None
    named = os.environ.get(VARIABLE)
    if named is None:
        return Transport.NATIVE if installed and not tls else Transport.GRPCIO
    if named not in set(Transport):
        known = ", ".join(Transport)
        raise ValueError(f"{VARIABLE}={named} is no transport: use one of {known}")
    transport = Transport(named)
    if transport is Transport.NATIVE and not installed:
        raise ValueError(
            f"{VARIABLE}={named} needs pygrpc-native: pip install 'spanner-watcher[native]'"
        )
    return transport


def make_grpc_server(
    transport: Transport,
    handlers: Handlers,
    others: grpc.GenericRpcHandler,  # type: ignore[type-arg]  # generic in stubs only
) -> grpc.Server:
    """A server that is not started; ``handlers`` are by the path of the method, ``others`` answers
    every other method."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), limits.FRAMES_MAX))
    threads = ThreadPoolExecutor(limits.THREADS_MAX, thread_name_prefix="call")
    if transport is Transport.NATIVE:
        native = import_module("pygrpc_native")  # an optional package
        server: grpc.Server = native.server(threads, handlers=[others], options=OPTIONS)
    else:
        server = grpc.server(threads, handlers=[others], options=OPTIONS)
    for service, methods in group_by_service(handlers).items():
        server.add_registered_method_handlers(service, methods)  # type: ignore[attr-defined]  # newer than the stubs
    return server


def bind(server: grpc.Server, transport: Transport, address: str, tls: Tls | None) -> int:
    """Listens on an address; the port. Raises StartError for TLS that cannot be, RuntimeError for
    an address that is taken."""
    if tls is None:
        return server.add_insecure_port(address)
    if transport is not Transport.GRPCIO:
        raise StartError(f"TLS needs the transport {Transport.GRPCIO}: unset {VARIABLE}")
    return server.add_secure_port(address, tls.load())


def group_by_service(
    handlers: Handlers,
) -> dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]]:
    """Handlers by service and method."""
    grouped: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = defaultdict(dict)
    for path, handler in handlers.items():
        _, service, method = path.split("/")
        grouped[service][method] = handler
    return grouped
