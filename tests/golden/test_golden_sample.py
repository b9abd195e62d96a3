"""A fixed sample of the case files, collected where they are; ``make conformance`` runs all of
them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from fixtures.server import CreateDatabase, connect

from emulator.process import ServerProcess
from golden import compliance, grammar, schema_changes
from golden.folder import FOLDER
from golden.outcomes import OUT_OF_SCOPE, Outcome, mark_out_of_scope

COMPLIANCE_FILES = {
    f"{name}.test"
    for name in (
        *("aggregation_order_by_queries", "any_value_aggregation", "array_joins", "bytes"),
        *("dml_insert", "hints", "interval", "join_queries", "json_queries", "numeric", "strings"),
        "with_expressions",
    )
}
"""Those where the answers were wrong most often."""


def is_sampled(name: str, one_of: int) -> bool:
    return zlib.crc32(name.encode()) % one_of == 0


def assert_no_fault(outcomes: Iterable[Outcome], at_least: int) -> None:
    judged = list(mark_out_of_scope(outcomes))
    faults = [each for each in judged if each.is_fault]
    assert not faults, "\n".join(f"{each.case}: {each.verdict}: {each.detail}" for each in faults)
    assert sum(each.verdict != OUT_OF_SCOPE for each in judged) >= at_least


def test_parser_cases_of_googlesql_are_taken_and_refused_as_there(
    create_database: CreateDatabase,
) -> None:
    database = create_database(grammar.SCHEMA)
    cases = (case for case in grammar.read_cases(FOLDER) if is_sampled(case.name, 8))
    assert_no_fault((grammar.judge(case, database) for case in cases), at_least=100)


def test_compliance_cases_of_googlesql_give_the_golden_results(server: ServerProcess) -> None:
    files = [path for path in compliance.find_files(FOLDER) if path.name in COMPLIANCE_FILES]
    assert_no_fault(compliance.run_files(server.address, FOLDER, files), at_least=300)


def test_schema_changes_of_google_s_emulator_have_the_same_outcome(server: ServerProcess) -> None:
    instance = connect(server.address)
    cases = (case for case in schema_changes.read_cases(FOLDER) if is_sampled(case.name, 5))
    outcomes = (schema_changes.judge(case, instance, n) for n, case in enumerate(cases))
    assert_no_fault(outcomes, at_least=20)
