"""The JSON Schemas and the Avro schema that come with the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def schema_text(name: str) -> str:
    """A schema by its file's name, such as ``debezium.json`` or ``datastream.avsc``."""
    return (files("watcher.envelopes") / "schemas" / name).read_text(encoding="utf-8")
