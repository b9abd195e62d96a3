"""A probe of each assumption that can be tried: by its name, what a database does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from watcher.overview.probe import reading, streaming, writing
from watcher.overview.probe.context import Observation, ProbeContext

Probe = Callable[[ProbeContext], Observation]

PROBES: Mapping[str, Probe] = {
    "on-update-dml": writing.compare_timestamp(writing.update_by_dml),
    "on-update-same-value": writing.compare_timestamp(writing.update_to_same_value),
    "on-update-mutation": writing.compare_timestamp(writing.update_by_mutation),
    "on-update-upsert": writing.probe_upserts,
    "on-update-replace": writing.compare_timestamp(writing.replace_by_mutation),
    "on-update-partitioned": writing.probe_partitioned,
    "strong-read-bound": reading.probe_strong_reads,
    "exact-read-repeats": reading.probe_exact_reads,
    "stream-names-partitions": streaming.probe_partitions,
    "stream-heartbeat-bound": streaming.probe_heartbeats,
}
"""Those that need the tables as they were made."""

PROBES_AFTER_CHANGES: Mapping[str, Probe] = {}
"""Those that look back at the tables after they have changed."""
