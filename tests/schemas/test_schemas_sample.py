"""A few small schemas of others, the whole way; ``make schemas`` takes all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud.spanner_v1.instance import Instance

from schemas.cases import list_names, read_case
from schemas.run import judge
from schemas.way import ENGINES

SAMPLE = Path(__file__).parent
"""Schemas of Google's DataflowTemplates, Apache-2.0 as this repository is."""


@pytest.mark.parametrize("name", list_names(SAMPLE))
def test_a_schema_of_others_holds_the_whole_way(name: str, instance: Instance) -> None:
    outcome = judge(read_case(SAMPLE, name), instance, 1, ENGINES)
    assert outcome.holds, outcome.problems
    assert outcome.counts["changes delivered"]
    assert outcome.counts["rows copied"]
