"""A probe of each assumption that can be tried: by its name, what a database does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from watcher.overview.probe import reading, refusing, schemas, streaming, writing
from watcher.overview.probe.context import Observation, ProbeContext

Probe = Callable[[ProbeContext], Observation]

PROBES: Mapping[str, Probe] = {
    "on-update-dml": writing.compare_timestamp(writing.update_by_dml),
    "on-update-same-value": writing.compare_timestamp(writing.update_to_same_value),
    "on-update-mutation": writing.compare_timestamp(writing.update_by_mutation),
    "on-update-upsert": writing.probe_upserts,
    "on-update-replace": writing.compare_timestamp(writing.replace_by_mutation),
    "on-update-partitioned": writing.probe_partitioned,
    "on-update-key-only": writing.probe_key_only,
    "default-on-insert": writing.probe_inserts,
    "explicit-value-wins": writing.probe_self_assignment,
    "explicit-null-wins": writing.probe_null,
    "read-after-dml": writing.probe_read_after_dml,
    "strong-read-bound": reading.probe_strong_reads,
    "exact-read-repeats": reading.probe_exact_reads,
    "partitions-cover-rows": reading.probe_partitions,
    "resume-token": reading.probe_resume_tokens,
    "index-reads-entries": reading.probe_index,
    "expired-versions-refused": refusing.probe_expired,
    "missing-objects-named": refusing.probe_missing,
    "optimistic-conflict": writing.probe_optimistic,
    "stream-names-partitions": streaming.probe_partitions,
    "stream-heartbeat-bound": streaming.probe_heartbeats,
    "stream-start-inside": streaming.probe_start,
    "stream-end-inside": streaming.probe_end,
    "stream-open-to-the-end": streaming.probe_open_queries,
    "stream-commit-order": streaming.probe_order,
    "stream-transaction-id": streaming.probe_transaction_ids,
    "stream-excludes-transaction": streaming.probe_exclusion,
    "stream-old-values": streaming.probe_old_values,
    "stream-new-row": streaming.probe_new_row,
    "stream-hidden-columns": streaming.probe_hidden,
    "stream-generated-columns": streaming.probe_generated,
}
"""Those that need the tables as they were made."""

PROBES_AFTER_CHANGES: Mapping[str, Probe] = {
    "schema-at-timestamp": schemas.probe_schema,
    "columns-at-timestamp": schemas.probe_columns,
    "dropped-table-readable": schemas.read_table(lambda names: names.dropped),
    "renamed-table-readable": schemas.read_table(lambda names: names.renamed),
    "schema-changes-listed": schemas.probe_listed_changes,
    "default-fills-rows": schemas.probe_filled,
}
"""Those that look back at the tables after they have changed."""
