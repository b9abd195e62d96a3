"""Serves the live page until a signal stops it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from watcher.cli.actions.config import load_config
from watcher.cli.actions.interruption import parse_interval, until_interrupted
from watcher.cli.logs import configure_logging
from watcher.cli.output import CONSOLE, ERRORS
from watcher.page.access import is_loopback
from watcher.page.service import PageService, hide_token
from watcher.settings.sections import PageConfig
from watcher.settings.watcher import check_page

WAKE_SECONDS = 1.0


def serve_page(path: Path | None, flags: Mapping[str, object], every: str | None) -> None:
    """Reads once, so that errors end the command, then serves until a signal.

    ``flags`` are set on top of the file; ``every`` is a duration, such as 5s.
    """
    seconds = parse_interval(every) if every is not None else None
    config = load_config(path, {**flags, "page.every": seconds})
    check_page(config)
    configure_logging(config.log_format, verbose=False)
    page = config.page or PageConfig()
    with until_interrupted():
        service = PageService(page, config.address, config.positions.table)
        service.read()
        service.start()
        print_address(str(config.address), page, service)
        while True:
            # A wait without an end would miss a signal that comes just before it.
            time.sleep(WAKE_SECONDS)


def print_address(database: str, page: PageConfig, service: PageService) -> None:
    """Prints where the page is."""
    address, advice = hide_token(service.link)
    if CONSOLE.is_terminal:
        address, advice = service.link, None
    CONSOLE.print(f"the page of {database} is at {address}")
    if advice is not None:
        ERRORS.print(advice)
    if not is_loopback(page.host):
        port = service.port
        CONSOLE.print(
            "others can reach it, without encryption: put it behind a proxy with TLS, or use"
            f" 'ssh -L {port}:localhost:{port}' and --host 127.0.0.1"
        )
    CONSOLE.print("Ctrl-C stops it")
