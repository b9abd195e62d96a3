"""The proof of the explorer: every fault that is put back is found."""

from __future__ import annotations

import pytest

from interleavings.mutations import MUTATIONS, Mutation
from interleavings.prove import SCHEDULES_MAX, find

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_fault_that_is_put_back_is_found(mutation: Mutation) -> None:
    number, outcome = find(mutation, SCHEDULES_MAX)
    assert outcome is not None, f"not found in {number} schedules"
