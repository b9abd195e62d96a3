"""A fixed sample of the case files; ``make conformance`` runs all of them."""

from __future__ import annotations

import zlib

import pytest
from fixtures.server import CreateDatabase

from golden import grammar
from golden.folder import FOLDER
from golden.outcomes import mark_out_of_scope

EACH = 8
"""One case of so many is in the sample."""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the case files of other projects are not in {FOLDER}"
)


def is_sampled(name: str) -> bool:
    return zlib.crc32(name.encode()) % EACH == 0


def test_a_sample_of_googlesql_parser_cases_is_taken_and_refused_as_there(
    create_database: CreateDatabase,
) -> None:
    database = create_database(grammar.SCHEMA)
    cases = [case for case in grammar.read_cases(FOLDER) if is_sampled(case.name)]
    assert len(cases) > 100
    outcomes = mark_out_of_scope(grammar.judge(case, database) for case in cases)
    assert [each for each in outcomes if each.is_fault] == []
