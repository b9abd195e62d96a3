"""Random schemas, each watched and copied in a random way; ``make any-schema`` draws thousands."""

from __future__ import annotations

import pytest
from google.cloud.spanner_v1.instance import Instance
from hypothesis import HealthCheck, given, settings

from schemas.any_schema import check
from schemas.drawings import Drawing, Judge, drawings


@pytest.fixture(scope="module")
def judge(instance: Instance) -> Judge:
    return Judge(instance)


@pytest.mark.essential
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,  # others are drawn by make any-schema
    suppress_health_check=list(HealthCheck),
)
@given(drawings)
def test_any_schema_is_watched_and_copied_exactly(judge: Judge, drawing: Drawing) -> None:
    check(judge, drawing)
