"""What commands print: text on the console, JSON for machines."""

from __future__ import annotations

import json
import sys

from watcher.process.terminal.console import TextConsole

CONSOLE = TextConsole()
ERRORS = TextConsole(stderr=True)


def print_json(value: object) -> None:
    """Prints a value as JSON, on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
