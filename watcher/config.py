"""What to watch and how: one validated model, from Spark options, flags or files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from watcher.database import DatabaseAddress
from watcher.errors import ConfigurationError
from watcher.positions import TABLE
from watcher.stream import micros_of
from watcher.window import BEGINNING

LATEST, EARLIEST = "latest", "earliest"
Text = Annotated[str, Field(min_length=1)]


class SourceOptions(BaseModel):
    """The options of the Spark source ``spanner-changes``, in camelCase there.

    ``consumer`` names this reader for clearing; without it nothing waits for the reader.
    ``starting_timestamp`` is ``latest``, ``earliest`` (everything still in the index) or an RFC
    3339 timestamp. ``max_rows_per_batch`` 0 is no limit. ``idle_seconds`` is how often the position
    of an idle table advances.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    project: Text
    instance: Text
    database: Text
    table: Text
    consumer: Text | None = None
    shard_groups: Annotated[int, Field(ge=1)] = 4
    starting_timestamp: Text = LATEST
    max_rows_per_batch: Annotated[int, Field(ge=0)] = 0
    idle_seconds: Annotated[float, Field(ge=0)] = 10.0
    positions_table: Text = TABLE

    @property
    def address(self) -> DatabaseAddress:
        """The database."""
        return DatabaseAddress(self.project, self.instance, self.database)


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """Spark's options, whose names are without regard to case. Raises ConfigurationError."""
    known = {to_camel(name).lower(): to_camel(name) for name in SourceOptions.model_fields}
    values = {}
    for name, value in given.items():
        if name.lower() not in known:
            raise unknown_option(name, known.values())
        values[known[name.lower()]] = value
    try:
        options = SourceOptions.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(explained(error)) from error
    resolve_start(options.starting_timestamp)
    return options


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
    return micros_of(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\Z")
UNITS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def duration_seconds(text: str) -> float:
    """'500ms', '1s', '5m', '2h', '1d' or plain seconds. Raises ConfigurationError."""
    match = DURATION.match(text.strip())
    if match is None:
        raise ConfigurationError(f"'{text}' is no duration: write 500ms, 1s, 5m, 2h or 1d")
    return float(match.group(1)) * UNITS[match.group(2)]
