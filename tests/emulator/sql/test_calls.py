"""Every call has the documented value and type, or is refused with the documented code."""

from __future__ import annotations

import pytest
from fixtures.calls import (
    aggregates,
    array_functions,
    conversions,
    json_functions,
    number_functions,
    text_functions,
    time_functions,
)
from fixtures.queries import ask, check
from google.cloud.spanner_v1.database import Database

SUBJECTS = (
    aggregates,
    array_functions,
    conversions,
    json_functions,
    number_functions,
    text_functions,
    time_functions,
)
VALUES = [case for subject in SUBJECTS for case in subject.VALUES]
REFUSED = [case for subject in SUBJECTS for case in subject.REFUSED]


def query(text: str) -> str:
    return text if text.startswith("SELECT") else f"SELECT {text}"


@pytest.mark.parametrize(("text", "types", "row"), VALUES, ids=[v[0] for v in VALUES])
def test_a_call_has_its_value_and_type(blank: Database, text: str, types: str, row: object) -> None:
    check(blank, query(text), types, row)


@pytest.mark.parametrize(("text", "error"), REFUSED, ids=[r[0] for r in REFUSED])
def test_a_wrong_call_is_refused_with_its_code(
    blank: Database, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(blank, query(text))
