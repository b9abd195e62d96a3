"""Starts and stops the embedded Spanner inside a process."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from emulator import faults as fault_module
from emulator import limits
from emulator import wrong as wrong_module
from emulator.data_directories import StartError, lock_directory
from emulator.engine.query_stats import COUNTED_EACH
from emulator.faults import FaultInjector, Faults
from emulator.ports import find_port
from emulator.services.backup_schedules import BackupSchedules
from emulator.services.backups import Backups
from emulator.services.calls import Call, Dispatcher
from emulator.services.churn import Churner
from emulator.services.copies import Copies
from emulator.services.database_admin import DatabaseAdmin
from emulator.services.instance_admin import InstanceAdmin
from emulator.services.instance_partitions import InstancePartitions
from emulator.services.operations import Operations
from emulator.services.registry import Registry
from emulator.services.sessions import Sessions
from emulator.services.spanner import SpannerApi
from emulator.tls import Tls
from emulator.transport import bind, choose_transport, make_grpc_server
from emulator.wire.messages import Message


class Server:
    """A running server; leaving a ``with`` block stops it."""

    def __init__(
        self,
        server: grpc.Server,
        registry: Registry,
        address: str,
        faults: FaultInjector,
        lock: TextIO | None,
        churner: Churner,
    ) -> None:
        self._server = server
        self._registry = registry
        self._lock = lock
        self._churner = churner
        self.address = address
        self.faults = faults

    def list_databases(self) -> list[str]:
        """The names of all databases, of all projects."""
        return sorted(self._registry.databases.copy())  # at once: others add to it

    def stop(self) -> None:
        """Refuses new calls, waits a little for those under way, closes the databases."""
        self._server.stop(limits.STOP_GRACE_SECONDS).wait()
        self._churner.stop()
        self._registry.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def start(
    host: str = "127.0.0.1",
    port: int = 0,
    data_dir: Path | None = None,
    faults: Faults | None = None,
    change_stream_churn_seconds: float = 0.0,
    count_scans_each: int = COUNTED_EACH,
    log_sql: bool = False,
    tls: Tls | None = None,
) -> Server:
    """Starts a server; port 0 takes a free one (``find_port``). In memory without ``data_dir``.

    Partitions of change streams split, merge or move at the churn's interval; 0 is never. Of each
    text every ``count_scans_each``-th execution counts its scanned rows for SPANNER_SYS. With
    ``log_sql`` the logger ``emulator.sql`` gets every query and DML statement at level INFO. With
    ``tls`` the port speaks TLS, which clients reach by an endpoint, not by SPANNER_EMULATOR_HOST.

    Raises StartError when the address or the directory is taken, or the transport is not there.
    """
    try:
        transport = choose_transport(tls is not None)
    except ValueError as error:
        raise StartError(str(error)) from error
    lock = lock_directory(data_dir) if data_dir is not None else None
    injector = FaultInjector(faults)
    registry = Registry(
        data_dir, count_scans_each, lambda: injector.versions_kept_micros, log_sql=log_sql
    )
    dispatcher = Dispatcher(list_calls(registry, injector), injector)
    server = make_grpc_server(transport, dispatcher.handlers, dispatcher)
    try:
        bound = bind(server, transport, f"{host}:{port or find_port(host)}", tls)
    except StartError:
        registry.close()
        raise
    except RuntimeError as error:
        registry.close()
        raise StartError(
            f"cannot listen on {host}, port {port}: another process may use the port, or this "
            "machine has no such address; use --port 0 for a free port, --host 127.0.0.1"
        ) from error
    churner = Churner(registry, injector, change_stream_churn_seconds)
    churner.start()
    server.start()
    return Server(server, registry, f"{host}:{bound}", injector, lock, churner)


def list_calls(registry: Registry, injector: FaultInjector) -> dict[str, Call]:
    """Every method that is served, by its path."""
    return {
        **SpannerApi(Sessions(registry, injector), injector).calls(),
        **DatabaseAdmin(registry, injector).calls(),
        **Backups(registry).calls(),
        **BackupSchedules(registry).calls(),
        **InstanceAdmin(registry).calls(),
        **InstancePartitions(registry).calls(),
        **Operations(registry).calls(),
        **Copies(registry).calls(),
        fault_module.METHOD: Call(Struct, lambda request, _: set_faults(injector, request)),
        wrong_module.METHOD: Call(Struct, lambda request, _: set_wrong(request)),
    }


def set_faults(injector: FaultInjector, request: Message) -> Message:
    """The extra method that sets faults while the server runs; answers with what is set now."""
    injector.set(Faults.from_mapping(MessageToDict(request)))
    return request


def set_wrong(request: Message) -> Message:
    """The extra method that makes behaviours wrong while the server runs."""
    wrong_module.set_wrong(MessageToDict(request).get("entries", []))
    return request
