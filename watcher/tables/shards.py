"""Which shard values make one slice."""

from __future__ import annotations

from collections.abc import Sequence

from watcher.model.errors import ConfigurationError
from watcher.model.window import ShardGroup
from watcher.tables.values import ShardValue


def group_shards(values: Sequence[ShardValue] | None, count: int) -> tuple[ShardGroup, ...]:
    """Splits all shard values into ``count`` groups whose sizes differ by one at most.

    More groups than values give one group a value; values that cannot be listed give none.
    Raises ConfigurationError for fewer than one group.
    """
    if count < 1:
        raise ConfigurationError(f"the number of shard groups must be at least 1, not {count}")
    if values is None:
        return ()
    ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
    used = min(count, len(ordered))
    return tuple(ShardGroup(n, tuple(ordered[n::used])) for n in range(used))
