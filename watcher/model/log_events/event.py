"""An event of the log: its name, level and fields stay as they are from release to release."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

FIELD = re.compile(r"%\((\w+)\)")
NAME = "event"
"""The attribute of a log record that has the name of its event."""


@dataclass(frozen=True, slots=True)
class Event:
    """What may be logged. ``message`` names its fields as ``%(field)s``; ``meaning`` says what has
    happened, and what to do."""

    name: str
    level: int
    message: str
    meaning: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, in the order of the message."""
        return tuple(dict.fromkeys(FIELD.findall(self.message)))

    def log(self, logger: logging.Logger, **values: object) -> None:
        """Logs it, with a value for each field."""
        args = (values,) if values else ()
        logger.log(self.level, self.message, *args, extra={NAME: self.name}, stacklevel=2)
