"""How single tables are read, checked as far as it can be without a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from watcher.model.errors import ConfigurationError
from watcher.tables.masks import MaskKey, MaskKind
from watcher.tables.predicate_parser import check_predicate
from watcher.tables.values import TableSpec

OF_STREAMS: Mapping[str, Any] = {
    "columns": None,
    "exclude_columns": (),
    "hidden_columns": False,
    "text_columns": (),
    "masks": {},
    "mask_key": None,
}
"""What can be said of a table whose changes come from a change stream, and the defaults."""


def is_for_streams(spec: TableSpec, copied: bool = False) -> bool:
    """Whether nothing is said of polling. A copy by a change stream may have a condition, because
    its changes have whole rows."""
    where = None if copied else spec.where
    return replace(spec, **OF_STREAMS, where=where) == TableSpec()


def check_table_specs(specs: Mapping[str, TableSpec]) -> None:
    """Checks the sections of a file. Raises ConfigurationError."""
    check_named_once(specs, "[table]")
    for name, spec in specs.items():
        check_table_spec(spec, f"table.{name}.shard")


def check_table_spec(spec: TableSpec, option: str) -> None:
    """Checks how one table is polled; ``option`` is where its shard is set. Raises
    ConfigurationError."""
    if spec.shard == "fixed" and not spec.shard_values:
        raise ConfigurationError(f"{option} = 'fixed' needs shard_values")
    if spec.shard in ("fixed", "time", "not-null") and spec.shard_column is None:
        raise ConfigurationError(f"{option} = '{spec.shard}' needs shard_column")
    if spec.where is not None:
        check_predicate(spec.where)
    if MaskKind.HASH in spec.masks.values():
        if spec.mask_key is None:
            raise ConfigurationError(
                f"{option.removesuffix('.shard')} has a column that is masked by '{MaskKind.HASH}',"
                ' which needs mask_key = { file = "PATH" } or { env = "NAME" }: a hash without a'
                " key can be guessed"
            )
        spec.mask_key.read()


def check_named_once(tables: Iterable[str], option: str) -> None:
    """Raises ConfigurationError for a table that is there in two spellings, of which one would
    count."""
    seen: dict[str, str] = {}
    for name in tables:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise ConfigurationError(
                f"{option} has the table {name} also as {other}: names of tables ignore case, so"
                " write all of its options in one place"
            )


def put_mask_key(spec: TableSpec, key: MaskKey | None) -> TableSpec:
    """How a table is read, with the key of hashes for all tables unless it has its own."""
    return replace(spec, mask_key=key) if spec.masks and spec.mask_key is None else spec
