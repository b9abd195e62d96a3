"""What ``python -m emulator`` does: reads the command line, and serves until a signal."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from emulator.data_directories import StartError
from emulator.engine.query_stats import COUNTED_EACH
from emulator.engine.query_stats import LOG as SQL_LOG
from emulator.errors import SpannerError
from emulator.faults import FAULT_HELP, Faults, parse_faults
from emulator.files import replace_file
from emulator.server import Server, start
from emulator.tls import Tls, choose_tls

READY = "listening on "
DEFAULT_PORT = 9010
YOUNG_OBJECTS_MAX = 10_000
EXPORTS = (
    "export SPANNER_EMULATOR_HOST={0}",
    'PowerShell: $env:SPANNER_EMULATOR_HOST = "{0}"',
    "dotenv: SPANNER_EMULATOR_HOST={0}",
)
"""How clients find the server; a line for sh alone comes first, as programs read it."""
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def serve(
    host: str,
    port: int,
    data_dir: Path | None,
    ready_file: Path | None = None,
    prepare: Callable[[Server], None] | None = None,
    change_stream_churn_seconds: float = 0.0,
    faults: Faults | None = None,
    count_scans_each: int = COUNTED_EACH,
    log_sql: bool = False,
    tls: Tls | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT. ``ready_file`` gets the address. Raises StartError.

    ``prepare`` is called with the server when it answers, before it says so. ``faults`` is
    the faults from the start; for ``count_scans_each``, ``log_sql`` and ``tls`` see
    ``emulator.server.start``.
    """
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    if log_sql:
        SQL_LOG.setLevel(logging.INFO)
    with (
        hold_stop_signals(),
        start(
            host,
            port,
            data_dir,
            faults=faults,
            change_stream_churn_seconds=change_stream_churn_seconds,
            count_scans_each=count_scans_each,
            log_sql=log_sql,
            tls=tls,
        ) as server,
    ):
        keep_loaded_modules()
        if prepare is not None:
            prepare(server)
        print(f"{READY}{server.address}", flush=True)
        for line in EXPORTS if tls is None else ():
            print(line.format(server.address), flush=True)
        if ready_file is not None:
            replace_file(ready_file, server.address + "\n")
        signal.sigwait(STOP_SIGNALS)


@contextmanager
def hold_stop_signals() -> Iterator[None]:
    """The signals wait for sigwait, in every thread that begins meanwhile, which inherits the mask:
    a handler of Python runs in the main thread only, which may not wake for a signal that another
    thread got. Processes inherit it, too: afterwards it is what it was."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def keep_loaded_modules() -> None:
    """Takes all that is loaded out of Python's garbage collection, which would go through it again
    and again (70 ms each time); what comes later is collected in larger steps."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(YOUNG_OBJECTS_MAX, 20, 20)


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m emulator", description="Embedded Spanner.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 picks a free port")
    parser.add_argument(
        "--data-dir", type=Path, help="keep the databases in this directory (default: in memory)"
    )
    parser.add_argument(
        "--ready-file", type=Path, help="write the address to this file once the server is ready"
    )
    parser.add_argument(
        "--change-stream-churn",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="split, merge or move partitions of change streams at this interval (0: never)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help=FAULT_HELP,
    )
    parser.add_argument(
        "--count-scans-each",
        type=int,
        default=COUNTED_EACH,
        metavar="N",
        help="count scanned rows of every N-th execution of a query in SPANNER_SYS (1: of all)",
    )
    parser.add_argument(
        "--log-sql",
        action="store_true",
        help="log every query and DML statement with its time and rows; values of parameters are"
        " not logged",
    )
    parser.add_argument("--tls-certificate", type=Path, help="speak TLS, with this file of PEM")
    parser.add_argument("--tls-key", type=Path, help="the key of --tls-certificate")
    parser.add_argument(
        "--tls-client-ca", type=Path, help="ask clients for a certificate of this authority"
    )
    options = parser.parse_args()
    try:
        faults = parse_faults(options.fault)
    except SpannerError as error:
        parser.error(error.message)
    try:
        tls = choose_tls(options.tls_certificate, options.tls_key, options.tls_client_ca)
        serve(
            options.host,
            options.port,
            options.data_dir,
            options.ready_file,
            change_stream_churn_seconds=options.change_stream_churn,
            faults=faults,
            count_scans_each=max(options.count_scans_each, 1),
            log_sql=options.log_sql,
            tls=tls,
        )
    except StartError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0
