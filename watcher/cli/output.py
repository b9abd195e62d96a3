"""What commands print: text on the console, JSON for machines, errors."""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.markup import escape

CONSOLE = Console(highlight=False)
ERRORS = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Prints a value as JSON, on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_error(message: str) -> None:
    """Prints an error on the standard error."""
    ERRORS.print(f"[bold red]error:[/bold red] {escape(message)}")
