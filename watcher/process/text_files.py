"""Text files that users write: in UTF-8, or in whatever Unicode their byte order mark names."""

from __future__ import annotations

import codecs
import tomllib
from pathlib import Path

from watcher.model.errors import ConfigurationError
from watcher.process.system_errors import describe_system_error

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and what they name. That of UTF-32 begins as that of UTF-16 does."""


def read_text_file(path: Path) -> str:
    """The text of a file, without its byte order mark and with line feeds alone as line ends.

    Raises ConfigurationError for a file that cannot be read, and for bytes that are no text: with
    their offset.
    """
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {describe_system_error(error)}") from error
    mark, encoding = next((each for each in MARKS if stored.startswith(each[0])), (b"", "utf-8"))
    try:
        text = stored[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise refuse_byte(path, stored, len(mark) + error.start, encoding) from error
    nul = stored.find(b"\0") if encoding == "utf-8" else -1
    if nul >= 0:
        raise refuse_byte(path, stored, nul, encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def refuse_byte(path: Path, stored: bytes, offset: int, encoding: str) -> ConfigurationError:
    """The error for a byte that no text of this encoding has there."""
    return ConfigurationError(
        f"{path} is not {encoding.upper()} text: byte 0x{stored[offset]:02X} at offset {offset};"
        " save it as UTF-8, or as UTF-16 with a byte order mark"
    )


def read_toml(path: Path) -> dict[str, object]:
    """A TOML file as plain values. Raises ConfigurationError with its line."""
    try:
        return tomllib.loads(read_text_file(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error
