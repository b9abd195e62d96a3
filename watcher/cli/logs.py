"""How logs are written: logfmt for people and grep, JSON for machines; never a row's values."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class Logfmt(logging.Formatter):
    """``time=... level=... logger=... message="..."``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return " ".join(f"{name}={quoted(value)}" for name, value in fields(record).items())


class JsonLog(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return json.dumps(fields(record))


def fields(record: logging.LogRecord) -> dict[str, str]:
    """What a line says."""
    shown = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    if record.exc_info and record.exc_info[0] is not None:
        shown["error"] = record.exc_info[0].__name__
    return shown


def quoted(value: str) -> str:
    """A value of logfmt: in quotes where it needs them."""
    return value if value and not set(value) & set(' "=\n') else json.dumps(value)


FORMATS: dict[str, type[logging.Formatter]] = {"logfmt": Logfmt, "json": JsonLog}


def log_as(form: str, verbose: bool) -> None:
    """Logs go to the standard error; rows and credentials are never logged."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING)
