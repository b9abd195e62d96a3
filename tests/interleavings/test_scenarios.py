"""Some schedules of every scenario; ``make explore`` runs as many as one likes."""

from __future__ import annotations

import pytest

from interleavings.explore import Explorer
from interleavings.run import failure_text, shares
from interleavings.scenarios import SCENARIOS, VARIANTS
from spanner_schema.model.schema import Dialect

pytestmark = [pytest.mark.timeout(300)]
SCHEDULES = 100
"""So many of each scenario, in even parts of its variants."""
SEED = 1
SHARES = {
    variant: share for name in SCENARIOS for variant, share in shares(name, SCHEDULES).items()
}


@pytest.mark.parametrize("name", SHARES)
def test_schedules(name: str) -> None:
    with Explorer(VARIANTS[name]) as explorer:
        summary = explorer.summary(explorer.random(SEED, SHARES[name]), until_failure=True)
    assert not summary.failures, failure_text(name, summary.failures[0])


POSTGRESQL_SHARES = {
    variant: share for name in SCENARIOS for variant, share in shares(name, 7).items()
}
"""The schedules are the same ones; what differs is how statements are written."""


@pytest.mark.parametrize("name", POSTGRESQL_SHARES)
def test_schedules_in_the_postgresql_dialect(name: str) -> None:
    with Explorer(VARIANTS[name], Dialect.POSTGRESQL) as explorer:
        share = POSTGRESQL_SHARES[name]
        summary = explorer.summary(explorer.random(SEED, share), until_failure=True)
    assert not summary.failures, failure_text(name, summary.failures[0], Dialect.POSTGRESQL)


def test_all_schedules_with_two_preemptions() -> None:
    """Those of a query that an operator stops, of which the outcomes could differ."""
    with Explorer(VARIANTS["spark-stopped"]) as explorer:
        summary = explorer.summary(explorer.exhaustive(2, 10_000), until_failure=True)
    assert not summary.failures, failure_text("spark-stopped", summary.failures[0])
    assert summary.schedules < 10_000
