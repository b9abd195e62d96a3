"""How logs are written: logfmt for people and grep, JSON for machines; never a row's values."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from watcher.process.terminal.mode import MODE


class LogfmtFormatter(logging.Formatter):
    """``time=... level=... logger=... message="..."``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return " ".join(f"{name}={quote_value(value)}" for name, value in fields(record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return json.dumps(fields(record))


def fields(record: logging.LogRecord) -> dict[str, str]:
    """The fields of a line."""
    values = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    if record.exc_info and record.exc_info[0] is not None:
        values["error"] = record.exc_info[0].__name__
    return values


def quote_value(value: str) -> str:
    """A value of logfmt: in quotes if it needs them."""
    plain = value.isprintable() and not set(value) & set(' "=')
    return value if value and plain else json.dumps(value)


FORMATS: dict[str, type[logging.Formatter]] = {"logfmt": LogfmtFormatter, "json": JsonFormatter}


def configure_logging(form: str, verbose: bool) -> None:
    """Sends logs to the standard error; rows and credentials are never logged."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    level = logging.ERROR if MODE.quiet else logging.INFO if verbose else logging.WARNING
    logging.basicConfig(handlers=[handler], level=level)
