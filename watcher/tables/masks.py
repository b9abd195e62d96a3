"""Masks of columns with personal data: what is delivered in place of their values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.errors import ConfigurationError
from watcher.process.text_files import read_text_file

REDACTED = "(redacted)"
KEY_CHARACTERS_MIN = 16
HASHED = (TypeCode.STRING, TypeCode.BYTES)


class MaskKind(StrEnum):
    """What becomes of the values of a column."""

    HASH = "hash"
    """The HMAC-SHA-256 of the value by a key of yours: equal values stay equal, in all tables. Of a
    STRING in hexadecimal digits; NULL stays NULL."""
    REDACT = "redact"
    """Always the text ``(redacted)``, also in place of NULL. The column is not read."""
    NULL = "null"
    """Always NULL. The column is not read."""


@dataclass(frozen=True, slots=True)
class MaskKey:
    """Where the key of hashes is: one of a file and an environment variable. So that no settings,
    logs or tasks of Spark have it, it is read where values are hashed."""

    file: Path | None = None
    """A file that has the key."""
    env: str | None = None
    """An environment variable that has it."""

    def read(self) -> bytes:
        """The key. Raises ConfigurationError that does not show it."""
        return read_key(self)

    def describe(self) -> dict[str, str]:
        """As settings have it."""
        return {"env": self.env} if self.env is not None else {"file": str(self.file)}

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            read_key_source, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    def __str__(self) -> str:
        return f"env:{self.env}" if self.env is not None else f"file:{self.file}"


def read_key_source(given: object) -> MaskKey:
    """Where a key is, from settings. Raises ValueError, for pydantic, that does not show what was
    given: it may be the key."""
    if isinstance(given, MaskKey):
        return given
    if isinstance(given, Mapping) and len(given) == 1:
        ((where, name),) = given.items()
        if where == "file" and isinstance(name, str | Path) and str(name):
            return MaskKey(file=Path(name))
        if where == "env" and isinstance(name, str) and name:
            return MaskKey(env=name)
    raise ValueError(
        'it is not shown, and is not { file = "PATH" } or { env = "NAME" }, which says where the'
        " key is"
    )


@dataclass(frozen=True, slots=True)
class Mask:
    """The mask of a column."""

    column: str
    kind: MaskKind
    key: MaskKey | None = None

    @property
    def reads_column(self) -> bool:
        """Whether the values are needed at all."""
        return self.kind is MaskKind.HASH


@lru_cache(maxsize=16)
def read_key(source: MaskKey) -> bytes:
    """As ``MaskKey.read``, once a process."""
    if source.env is not None:
        if source.env not in os.environ:
            raise ConfigurationError(f"mask_key: the environment variable {source.env} is not set")
        key, where = os.environ[source.env], f"the environment variable {source.env}"
    else:
        assert source.file is not None, "a source is one of the two"
        key, where = read_text_file(source.file).removesuffix("\n"), f"the file {source.file}"
    if len(key) < KEY_CHARACTERS_MIN:
        raise ConfigurationError(
            f"mask_key: {where} has fewer than {KEY_CHARACTERS_MIN} characters, so that hashes"
            " could be guessed: make a key with 'openssl rand -hex 32'"
        )
    return key.encode()


def fits(mask: MaskKind, type_: Type) -> bool:
    """Whether values of a type can be masked so."""
    match mask:
        case MaskKind.HASH:
            return type_.code in HASHED
        case MaskKind.REDACT:
            return type_.code is TypeCode.STRING
        case MaskKind.NULL:
            return True
