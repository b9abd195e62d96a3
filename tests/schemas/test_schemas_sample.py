"""A few small schemas, the whole way: of others (Google's DataflowTemplates, Apache-2.0 as this
repository is), and of tables without a primary key. ``make schemas`` takes all of them."""

from __future__ import annotations

import pytest
from google.cloud.spanner_v1.instance import Instance

from schemas.cases import KEPT, list_names, read_case
from schemas.run import judge
from schemas.way import ENGINES


@pytest.mark.parametrize("name", list_names(KEPT))
def test_a_schema_holds_the_whole_way(name: str, instance: Instance) -> None:
    outcome = judge(read_case(name, KEPT), instance, 1, ENGINES)
    assert outcome.holds, outcome.problems
    assert outcome.counts["changes delivered"]
    assert outcome.counts["rows copied"]
