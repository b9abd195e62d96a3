"""What the options of Spark and of a watcher have in common: fields, and refusals of wrong ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, ValidationError

from watcher.errors import ConfigurationError
from watcher.spanner.timestamps import to_micros
from watcher.window import BEGINNING

LATEST, EARLIEST = "latest", "earliest"

Text = Annotated[str, Field(min_length=1)]

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\Z")

UNITS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def duration_seconds(text: str) -> float:
    """'500ms', '1s', '5m', '2h', '1d' or plain seconds. Raises ConfigurationError."""
    match = DURATION.match(text.strip())
    if match is None:
        raise ConfigurationError(f"'{text}' is no duration: write 500ms, 1s, 5m, 2h or 1d")
    return float(match.group(1)) * UNITS[match.group(2)]


def unknown_option(name: str, known: Iterable[str]) -> ConfigurationError:
    """The refusal of an option that is not there, with the nearest one that is."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known options: {', '.join(names)}"
    return ConfigurationError(f"there is no option '{name}'; {hint}")


def explained(error: ValidationError) -> str:
    """Pydantic's findings as one sentence."""
    parts = []
    for each in error.errors():
        where = ".".join(str(part) for part in each["loc"])
        if each["type"] == "missing":
            parts.append(f"the option '{where}' is missing")
        else:
            parts.append(f"the option '{where}' is wrong: {each['msg']} (got {each['input']!r})")
    return "; ".join(parts)


def resolve_start(text: str) -> int | None:
    """A start as microseconds since 1970; None is now. Raises ConfigurationError."""
    if text == LATEST:
        return None
    if text == EARLIEST:
        return BEGINNING
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"'{text}' is no start: write {LATEST}, {EARLIEST} or a timestamp such as"
            " 2026-01-31T12:00:00Z"
        ) from error
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
