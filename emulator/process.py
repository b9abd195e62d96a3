"""The server as a process of its own, for tests, the demo and benchmarks."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from emulator import faults as fault_module
from emulator import wrong as wrong_module
from emulator.faults import Faults
from emulator.tls import Tls

READY = "listening on "
START_SECONDS_MAX = 300.0
"""A second or two on a machine with idle cores."""
STOP_SECONDS_MAX = 30.0
CALL_SECONDS_MAX = 30.0


class ServerProcess:
    """A running ``python -m emulator``; leaving the ``with`` block ends it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """A clean stop."""
        self._end(signal.SIGTERM)

    def set_faults(self, faults: Faults) -> None:
        """Sets the faults to inject from now on; ``Faults()`` injects none."""
        call_server(self.address, fault_module.METHOD, asdict(faults))

    def set_wrong(self, *entries: str) -> None:
        """Makes some behaviours wrong from now on (``emulator.wrong``), and all others right."""
        call_server(self.address, wrong_module.METHOD, {"entries": list(entries)})

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.running:
            self.terminate()

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.wait(STOP_SECONDS_MAX)
        if self._process.stdout is not None:
            self._process.stdout.close()


def call_server(
    address: str, method: str, values: Mapping[str, Any], seconds_max: float = CALL_SECONDS_MAX
) -> None:
    """Calls a method that Spanner does not have. Raises grpc.RpcError."""
    request = Struct()
    request.update(values)
    # A connection of its own: the shared one may still be backing off from a server that was
    # killed and has come back on the same port.
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        call = channel.unary_unary(method, Struct.SerializeToString, Struct.FromString)
        call(request, timeout=seconds_max)


def start_python(arguments: list[str]) -> subprocess.Popen[str]:
    """A Python like this one, whose output can be read."""
    return subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)


def spawn(
    data_dir: Path | None = None,
    port: int = 0,
    change_stream_churn_seconds: float = 0.0,
    faults: Faults | None = None,
    count_scans: bool = False,
    start: Callable[[list[str]], subprocess.Popen[str]] = start_python,
    tls: Tls | None = None,
) -> ServerProcess:
    """Starts a server on loopback and returns when it serves; ``faults`` from the start. With
    ``count_scans`` SPANNER_SYS counts the rows that every execution scans, not those of a sample.
    ``start`` starts a Python with the given arguments. With ``tls`` the port speaks TLS; faults are
    then those from the start.

    Raises RuntimeError when it does not come up in START_SECONDS_MAX; its standard error says
    why.
    """
    command = ["-m", "emulator", "--port", str(port)]
    if change_stream_churn_seconds:
        command += ["--change-stream-churn", str(change_stream_churn_seconds)]
    if count_scans:
        command += ["--count-scans-each", "1"]
    for name, value in asdict(faults or Faults()).items():
        if value:
            command += ["--fault", f"{name}={value}"]
    if data_dir is not None:
        command += ["--data-dir", str(data_dir)]
    if tls is not None:
        command += tls.list_options()
    process = start(command)
    line = ""
    if process.stdout is not None and select.select([process.stdout], [], [], START_SECONDS_MAX)[0]:
        line = process.stdout.readline().strip()
    if not line.startswith(READY):
        process.kill()
        process.wait(STOP_SECONDS_MAX)
        raise RuntimeError("The embedded Spanner did not start: see its standard error.")
    return ServerProcess(process, line.removeprefix(READY))
