"""The proof of the explorer: every fault that is put back is found."""

from __future__ import annotations

import pytest

from interleavings.guards import GUARDS, Guard
from interleavings.mutations import MUTATIONS, Mutation
from interleavings.prove import SCHEDULES_MAX, find
from spanner_schema.model.schema import Dialect

pytestmark = [pytest.mark.timeout(900)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_fault_that_is_put_back_is_found(mutation: Mutation) -> None:
    number, outcome = find(mutation, SCHEDULES_MAX)
    assert outcome is not None, f"not found in {number} schedules"


@pytest.mark.essential
@pytest.mark.parametrize("fault", [*MUTATIONS, *GUARDS], ids=lambda fault: fault.name)
def test_what_a_fault_replaces_is_there(fault: Mutation | Guard) -> None:
    """Looking for every fault takes an hour; a function that was renamed fails at once."""
    with fault.remove():
        pass


BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
OF_STATEMENTS = (
    "clearing does not say how far",
    "columns are those of the start",
    "a query reads the shards of its start",
)


@pytest.mark.parametrize("name", OF_STATEMENTS)
def test_faults_are_found_in_the_postgresql_dialect(name: str) -> None:
    number, outcome = find(BY_NAME[name], SCHEDULES_MAX, dialect=Dialect.POSTGRESQL)
    assert outcome is not None, f"not found in {number} schedules"
