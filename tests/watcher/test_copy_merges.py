"""Merges into copies leave what plain Python leaves, whatever the key and the names are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import get_args

import pytest
from fixtures.copied_tables import (
    NAMES,
    CopiedTable,
    copied_tables,
    load_and_merge,
    read_delta_files,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from watcher.replica.copies import Merging
from watcher.replica.delta.copy import DeltaCopy
from watcher.replica.merge_sql import DATAFUSION, SPARK, MergeSql, render_spark_merge

EXAMPLES = int(os.environ.get("COPY_EXAMPLES", "12"))


@pytest.mark.parametrize("merging", get_args(Merging))
@settings(max_examples=EXAMPLES, deadline=None, print_blob=True)
@given(st.data())
def test_merges_into_delta_leave_what_plain_python_leaves(
    merging: Merging, data: st.DataObject
) -> None:
    table: CopiedTable = data.draw(copied_tables())
    with tempfile.TemporaryDirectory() as folder:
        copy = DeltaCopy(folder, "c", merging)
        for expected, state in load_and_merge(data, table, copy):
            scanned = [row for batch in copy.scan(state.version) for row in batch.to_pylist()]
            expected.assert_equals(scanned)
            expected.assert_equals(read_delta_files(Path(folder)))


@pytest.mark.parametrize("engine", [DATAFUSION, SPARK])
@given(st.lists(st.sampled_from(NAMES) | st.text(min_size=1), min_size=1, max_size=16, unique=True))
def test_every_operand_and_every_name_is_closed(engine: MergeSql, key: list[str]) -> None:
    """Read as its grammar has it: names within marks, which are doubled inside, and nothing that
    binds two comparisons but ANDs between parentheses."""
    text = engine.match_keys(key)
    names, outside, rest = [], [], text
    while (start := rest.find(engine.mark)) >= 0:
        outside.append(rest[:start])
        end = start + 1
        while rest[end : end + 2] == engine.mark * 2 or rest[end] != engine.mark:
            end += 2 if rest[end] == engine.mark else 1
        names.append(rest[start + 1 : end].replace(engine.mark * 2, engine.mark))
        rest = rest[end + 1 :]
    assert names == [name for name in key for _ in range(2)]
    between = f") {engine.same} (s."
    assert outside == ["((t.", between, *["))" + " AND ((t.", between] * (len(key) - 1)]
    assert rest == "))"


def test_the_merge_of_spark_as_text() -> None:
    assert render_spark_merge("`x`", "`y`", ["a`b", "$deleted"], ["a`b"]) == (
        "MERGE INTO `x` AS t USING `y` AS s ON ((t.`a``b`) <=> (s.`a``b`))"
        " WHEN MATCHED AND ((s.`$deleted`) AND ((t.`_spanner_commit_timestamp` IS NULL) OR"
        " (s.`_spanner_commit_timestamp` > t.`_spanner_commit_timestamp`))) THEN DELETE"
        " WHEN MATCHED AND ((NOT (s.`$deleted`)) AND ((t.`_spanner_commit_timestamp` IS NULL) OR"
        " (s.`_spanner_commit_timestamp` > t.`_spanner_commit_timestamp`)))"
        " THEN UPDATE SET t.`a``b` = s.`a``b`"
        " WHEN NOT MATCHED AND (NOT (s.`$deleted`)) THEN INSERT (`a``b`) VALUES (s.`a``b`)"
    )
