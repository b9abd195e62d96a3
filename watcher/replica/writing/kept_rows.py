"""Plans merges into a table as the mode of its copy asks for it. Where deleted rows stay, or
versions, the old rows of the keys that change are read, and written anew as the changes leave
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from watcher.replica.copies import find_order, find_stamp
from watcher.replica.cuts.modes import HISTORY, LATEST, find_mode
from watcher.replica.keys.hashes import Words
from watcher.replica.row_versions import AT, KeyedRows, arrange_changes, merge_changes
from watcher.replica.writing.key_index import NEVER, Entries
from watcher.replica.writing.live_files import F, M, SomeRows, TableVersion
from watcher.replica.writing.live_rows import LiveRows, to_micros
from watcher.replica.writing.merge_plan import MergePlan, plan_merge, take_columns


def plan_rows(
    live: LiveRows[F, M],
    files: SomeRows[F],
    version: TableVersion[F],
    schema: pa.Schema,
    rows: pa.Table,
    key: Sequence[str],
    path: str,
) -> MergePlan:
    """The merge of rows into a version, as the mode of its copy asks for it. The table has the
    columns of a ``schema`` from then on; ``LiveRows.follow`` comes first."""
    if find_mode(schema.names) == LATEST:
        return plan_merge(live, schema, rows, key, path)
    keys = take_columns(rows, schema, key, path)
    plan = plan_kept_rows(live, files, version, schema, rows, keys)
    return replace(plan, rows=take_columns(plan.rows, schema, schema.names, path))


def plan_kept_rows(
    live: LiveRows[F, M],
    files: SomeRows[F],
    version: TableVersion[F],
    schema: pa.Schema,
    rows: pa.Table,
    keys: pa.Table,
) -> MergePlan:
    """The same of changes with these keys, where old rows stay."""
    hashes = live.hash(keys)
    unique, numbers = np.unique(np.stack(hashes, axis=1), axis=0, return_inverse=True)
    found = (np.ascontiguousarray(unique[:, 0]), np.ascontiguousarray(unique[:, 1]))
    times = to_micros(rows.column(choose_time(rows)).combine_chunks())
    changes = arrange_changes(rows, numbers.reshape(-1).astype(np.int64), times)
    old, entries = read_old_rows(live, files, version, schema, found)
    merged = merge_changes(changes, old, schema)
    order = merged.rows.column(find_order(schema.names))
    return MergePlan(
        merged.rows,
        (found[0][merged.keys], found[1][merged.keys]),
        to_micros(order.combine_chunks()),
        live.group(entries.take(merged.replaced)),
    )


def read_old_rows(
    live: LiveRows[F, M],
    files: SomeRows[F],
    version: TableVersion[F],
    schema: pa.Schema,
    hashes: tuple[Words, Words],
) -> tuple[KeyedRows, Entries]:
    """The newest rows of keys, and where they are."""
    keys, there = live.find(hashes)
    newest = np.full(len(hashes[0]), NEVER)
    np.maximum.at(newest, keys, there.stamps)
    if find_mode(schema.names) == HISTORY:
        chosen = there.stamps == newest[keys]
        keys, there = keys[chosen], there.take(chosen)
    order = np.lexsort((there.rows, there.files))
    keys, there = keys[order], there.take(order)
    read = [
        files.read_rows(version.files[path], schema, numbers)
        for path, numbers in live.list_by_file(there)
    ]
    by_key = np.lexsort((there.stamps, keys))
    entries = there.take(by_key)
    rows = pa.concat_tables([schema.empty_table(), *read]).take(pa.array(by_key))
    return KeyedRows(rows, keys[by_key], entries.stamps), entries


def choose_time(rows: pa.Table) -> str:
    """The column that says when rows have changed."""
    return AT if AT in rows.column_names else find_stamp(rows.column_names)
