"""What the instances of a shared consumer must have in common: everything that decides which rows
come, and as what. How often one polls, and where its files are, is its own."""

from __future__ import annotations

import json

from watcher.settings.watcher import WatchConfig

SETTINGS = (
    "backfill",
    "capture",
    "exclude",
    "mask_key",
    "nanoseconds",
    "on_missing_index",
    "start",
    "table",
    "tables",
)
DELIVERY = ("envelope", "envelope_options", "then")
CLEARING = ("every", "margin", "rows_max", "method")
"""One of the parts clears, whoever holds it."""
UNORDERED = ("backfill", "exclude", "tables")


def describe_common_settings(config: WatchConfig) -> dict[str, str]:
    """The settings, as JSON by name; those that have their default are left out, so that one that a
    later release adds makes no difference."""
    values = config.model_dump(mode="json", exclude_defaults=True)
    common = {name: values[name] for name in SETTINGS if name in values}
    common |= {name: sorted(common[name]) for name in UNORDERED if name in common}
    for section, names in (("delivery", DELIVERY), ("clearing", CLEARING)):
        inside = values.get(section) or {}
        common |= {f"{section}.{name}": inside[name] for name in names if name in inside}
    if config.delivery.queue is not None:
        common["delivery.to"] = config.delivery.queue.identity
    return {name: json.dumps(value, sort_keys=True) for name, value in common.items()}
