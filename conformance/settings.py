"""What a run does, as plain values: from the command line, and in the file of a run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from conformance.formats import FORMATS
from conformance.recording import Promises
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress

Prepared = Literal["stream", "poll"]
STREAM = "Changes"
"""The change stream of a run."""
BLOWS = ("kill", "stop", "freeze", "restart_server", "trouble", "change_schema")
OF_SERVER = frozenset({"restart_server", "trouble"})
"""The blows that only an embedded Spanner takes."""
PLACEHOLDER = re.compile(r"\{(\w+)\}")
VALUE_CAPTURES = ("OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES")


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds are of: writing and striking; the wait at the end for what has not come, from the
    last change that came on; the wait after SIGTERM; the wait for the first line of a start before
    the next blow; the pause between two blows, on average."""

    command: str
    seed: int = 1
    preset: str = ""
    format: str = "plain"
    prepare: Prepared = "stream"
    value_captures: tuple[str, ...] = ("OLD_AND_NEW_VALUES",)
    promises: Promises = field(default_factory=Promises)
    blows: tuple[str, ...] = BLOWS
    seconds: float = 8.0
    settle_seconds: float = 30.0
    stop_seconds: float = 30.0
    start_seconds: float = 120.0
    pause_seconds: float = 0.6
    churn: bool = False
    database: str = ""
    """The address of a database that is made for the run; empty for an embedded Spanner."""

    def check(self) -> None:
        """Raises ConfigurationError for what is no choice, AddressError for no address."""
        split_command(self.command, {})
        if self.database:
            DatabaseAddress.parse(self.database)
        check_choice("--format", self.format, tuple(FORMATS))
        for blow in self.blows:
            check_choice("--blow", blow, BLOWS)
            if self.database and blow in OF_SERVER:
                raise ConfigurationError(
                    f"--blow {blow} strikes an embedded Spanner: leave it out with --database"
                )
        for capture in self.value_captures:
            check_choice("--value-capture", capture, VALUE_CAPTURES)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Settings:
        """The settings of a file that ``dataclasses.asdict`` has made."""
        names = {each.name for each in fields(cls)}
        chosen = {name: value for name, value in values.items() if name in names}
        chosen["promises"] = Promises(**values["promises"])
        for name in ("blows", "value_captures"):
            chosen[name] = tuple(values[name])
        return cls(**chosen)


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises ConfigurationError for what is no choice."""
    if value not in choices:
        raise ConfigurationError(f"{option}: unknown {value!r}: use one of {', '.join(choices)}")


def split_command(text: str, values: Mapping[str, str]) -> list[str]:
    """A command as words, with its placeholders replaced. Raises ConfigurationError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"--against cannot be split into words: {error}") from error
    if not words:
        raise ConfigurationError("--against is empty: give a command, or the name of a system")
    return [PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in words]
