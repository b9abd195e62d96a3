"""What a copy shows of its table, where that is not every row as it is: a condition, and masks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from watcher.captures.masked_values import digest, read_key
from watcher.model.errors import ConfigurationError
from watcher.tables.masks import Mask, MaskKey, MaskKind
from watcher.tables.values import WatchedTable

IDENTIFIED = b"spanner-watcher: which key this is"
IDENTIFIER_BYTES = 8


@dataclass(frozen=True, slots=True)
class View:
    """``where``: the condition that the rows satisfy; None: every row is there. ``masks``: which
    columns are masked, and how. ``mask_key`` identifies the key of hashes, and does not tell it."""

    where: str | None = None
    masks: Mapping[str, MaskKind] = field(default_factory=dict)
    mask_key: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the copy shows everything."""
        return self.where is None and not self.masks

    def to_stored(self) -> dict[str, Any]:
        """As it is stored."""
        return {"where": self.where, "masks": dict(self.masks), "mask_key": self.mask_key}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> View:
        """As it was stored."""
        masks = {name: MaskKind(kind) for name, kind in stored["masks"].items()}
        return cls(stored["where"], masks, stored["mask_key"])

    @classmethod
    def of_table(cls, table: WatchedTable) -> View:
        """What a copy of a table shows. Raises ConfigurationError for a condition on a column that
        clearing changes: rows would leave and enter without a change."""
        cleared = set(list_cleared(table)) & {name for name, _ in table.filtered}
        if cleared:
            raise ConfigurationError(
                f"where of table {table.name} names {min(cleared)}, which clearing writes, so that"
                " no change tells when a row satisfies the condition: use other columns"
            )
        keys = {identify_key(mask) for mask in table.masks if mask.kind is MaskKind.HASH}
        where = table.row_filter.text if table.row_filter is not None else None
        masks = {mask.column: mask.kind for mask in table.masks}
        return cls(where, masks, keys.pop() if keys else None)

    def list_masks(
        self, table: str, keys: Sequence[MaskKey], columns: Collection[str]
    ) -> tuple[Mask, ...]:
        """The masks of some columns, with that of some keys which hashes them. Raises
        ConfigurationError where it is not among these."""
        chosen = [Mask(name, kind) for name, kind in self.masks.items() if name in columns]
        if all(mask.kind is not MaskKind.HASH for mask in chosen):
            return tuple(chosen)
        known = {identify_key(Mask("", MaskKind.HASH, key)): key for key in keys}
        key = known.get(self.mask_key or "")
        if key is None:
            what = "by a key that none of --mask-key is" if keys else "by a key"
            raise ConfigurationError(
                f"the copy of {table} has columns that are hashed {what}: say where the key is, by"
                " --mask-key file:PATH or --mask-key env:NAME"
            )
        return tuple(replace(mask, key=key) for mask in chosen)


WHOLE = View()


def identify_key(mask: Mask) -> str:
    """A text that is the same for the same key of hashes. Raises ConfigurationError."""
    return digest(IDENTIFIED, read_key(mask))[:IDENTIFIER_BYTES].hex()


def list_cleared(table: WatchedTable) -> tuple[str, ...]:
    """The columns that clearing writes: ``processed`` and with it the shard, or the timestamp."""
    if table.change_sets is not None:
        return ()
    cleared = (
        (table.processed_column, table.shard_column)
        if table.processed_column is not None
        else (table.timestamp_column,)
    )
    return tuple(name for name in cleared if name)
