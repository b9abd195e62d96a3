"""Tables of Spark's catalog: ``CREATE TABLE t USING `spanner-changes` OPTIONS (...)``.

Spark (up to 4.3) gives a source in Python the options of a table when the table is created, and
none of them when it is read; what it gives then is the schema, as it was found at first. So the
options are in the metadata of each of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from watcher.model.errors import ConfigurationError

COPY_PREFIX = "option."
"""Spark adds a copy of each option under such a name where a table is created; what has none is a
property of the table."""
METADATA_KEY = "spanner-changes"


def find_table_options(texts: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table that is being created; None where there is no table."""
    copies = {
        name[len(COPY_PREFIX) :]: text
        for name, text in texts.items()
        if name.lower().startswith(COPY_PREFIX)
    }
    return copies or None


def attach_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """A schema that carries options."""
    return StructType(
        [
            StructField(
                field.name,
                field.dataType,
                field.nullable,
                {**field.metadata, METADATA_KEY: dict(options)},
            )
            for field in schema.fields
        ]
    )


def detach_options(schema: StructType) -> tuple[StructType, dict[str, str]]:
    """A schema without the options that it carries, and these."""
    options: dict[str, str] = {}
    fields = []
    for field in schema.fields:
        metadata = dict(field.metadata or {})
        options |= metadata.pop(METADATA_KEY, {})
        fields.append(StructField(field.name, field.dataType, field.nullable, metadata))
    return StructType(fields), options


def merge_options(stored: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The options of a table, and those of the query that reads it, which come first. Raises
    ConfigurationError where there are none."""
    if not stored and not given:
        raise ConfigurationError(
            "no options were given: spanner-changes needs project, instance, database, and table or"
            " tables. Of a table in SQL Spark keeps them only if CREATE TABLE names no columns:"
            " CREATE TABLE name USING `spanner-changes` OPTIONS (...)"
        )
    named = {name.lower() for name in given}
    return {name: text for name, text in stored.items() if name.lower() not in named} | dict(given)
