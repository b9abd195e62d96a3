"""Which shard values make one slice."""

from __future__ import annotations

from collections.abc import Sequence

from watcher.errors import ConfigurationError
from watcher.window import ShardGroup


def groups(values: Sequence[int], count: int) -> tuple[ShardGroup, ...]:
    """Splits all shard values into ``count`` groups whose sizes differ by one at most.

    More groups than values give one group a value. Raises ConfigurationError for less than one.
    """
    if count < 1:
        raise ConfigurationError(f"the number of shard groups must be at least 1, not {count}")
    ordered = sorted(values)
    used = min(count, len(ordered))
    return tuple(ShardGroup(n, tuple(ordered[n::used])) for n in range(used))
