"""Values that are used and never shown: passwords, keys, and what may hold one.

A ``Secret`` has no text of its own: it is ``(hidden)`` in messages, logs, tracebacks and JSON. The
value may be in a file or in the environment, so that the file of settings holds none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from watcher.model.errors import ConfigurationError
from watcher.process.text_files import read_text_file

HIDDEN = "(hidden)"
CREDENTIALS = re.compile(r"(?<=://)[^\s']+@")
"""A user, and perhaps a password, in an address; a password may have a ``/`` or an ``@``."""

Scalar = str | int | float | bool


class Secret:
    """A value that only ``reveal`` gives."""

    __slots__ = ("_value",)

    def __init__(self, value: Scalar) -> None:
        self._value = value

    def reveal(self) -> Scalar:
        """The value, for whom it is meant."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, _: str) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not pickled: it would be readable wherever the pickle goes")

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            read_secret, serialization=core_schema.plain_serializer_function_ser_schema(repr)
        )


def read_secret(given: object) -> Secret:
    """A value of the settings, or what ``{file = "PATH"}`` or ``{env = "NAME"}`` names. Raises
    ValueError, for pydantic, that does not show it."""
    if isinstance(given, Secret):
        return given
    if isinstance(given, Scalar):
        return Secret(given)
    if isinstance(given, Mapping) and len(given) == 1:
        ((where, name),) = given.items()
        if where == "file" and isinstance(name, str):
            return Secret(read_file(Path(name)))
        if where == "env" and isinstance(name, str):
            return Secret(read_variable(name))
    raise ValueError(
        'its value is not shown, and is not a text, a number, true, false, { file = "PATH" } or'
        ' { env = "NAME" }; a name with dots is written in quotes'
    )


def read_file(path: Path) -> str:
    """The text of a file, without the end of its last line. Raises ValueError, for pydantic."""
    try:
        return read_text_file(path).removesuffix("\n")
    except ConfigurationError as error:
        if isinstance(error.__cause__, OSError):
            raise ValueError(f"cannot read the file {path}: {error.__cause__.strerror}") from error
        # The error quotes the file: it is not the cause that anybody sees.
        raise ValueError(f"cannot read the file {path}: it is not text") from None


def read_variable(name: str) -> str:
    """The value of an environment variable. Raises ValueError, for pydantic."""
    if name not in os.environ:
        raise ValueError(f"the environment variable {name} is not set")
    return os.environ[name]


def hide_all(values: Mapping[str, Scalar]) -> dict[str, Secret]:
    """Values, from now on hidden."""
    return {name: Secret(value) for name, value in values.items()}


def reveal_all(secrets: Mapping[str, Secret]) -> dict[str, Scalar]:
    """The values, for whom they are meant."""
    return {name: secret.reveal() for name, secret in secrets.items()}


def hide_values(text: str, secrets: Mapping[str, Secret]) -> str:
    """A text of somebody who knows the values, without them; the longest ones first, since one may
    be a part of another."""
    values = {str(secret.reveal()) for secret in secrets.values()} - {""}
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])", HIDDEN, text)
    return text


def hide_credentials(text: str) -> str:
    """An address without the user and the password that somebody has put into it."""
    return CREDENTIALS.sub(f"{HIDDEN}@", text)
