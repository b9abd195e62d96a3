"""How logs are written: logfmt for people and grep, JSON for machines; never a row's values."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from watcher.model.log_events.event import NAME
from watcher.process.terminal.mode import MODE
from watcher.process.tracing import find_identifiers

Value = str | int | float | bool | None


class LogfmtFormatter(logging.Formatter):
    """``time=... level=... logger=... event=... message="..."``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return " ".join(f"{name}={quote_value(text)}" for name, text in list_texts(record).items())


class JsonFormatter(logging.Formatter):
    """One JSON object for each line, with the fields of its event."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return json.dumps(list_texts(record) | list_fields(record))


def list_texts(record: logging.LogRecord) -> dict[str, str]:
    """What every line has, and the event, the trace and the kind of error where there is one."""
    texts = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
    }
    if name := getattr(record, NAME, None):
        texts["event"] = name
    texts["message"] = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        texts["error"] = record.exc_info[0].__name__
    return texts | find_identifiers()


def list_fields(record: logging.LogRecord) -> dict[str, Value]:
    """The fields of the record's event: numbers as numbers, everything else as text."""
    if not hasattr(record, NAME) or not isinstance(record.args, dict):
        return {}
    plain = (int, float, bool, type(None))
    return {
        name: value if isinstance(value, plain) else str(value)
        for name, value in record.args.items()
    }


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
