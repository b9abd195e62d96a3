"""The ids that Spanner takes for what it names."""

import pytest

from spanner_schema.model.resource_ids import IdRules


@pytest.mark.parametrize("rule", IdRules)
def test_ids_at_their_limits(rule: IdRules) -> None:
    longest = rule.value.length_max
    for identifier in ("ab", "a1", "a-b", "a" * longest):
        assert rule.explain(identifier) is None, identifier
    for identifier in ("", "a", "1a", "-a", "a-", "Ab", "a b", "ab\n", "é1", "a" * (longest + 1)):
        assert rule.explain(identifier) is not None, identifier


def test_an_underscore_stands_in_ids_of_databases_and_backups_alone() -> None:
    assert [rule.name for rule in IdRules if rule.explain("a_b") is None] == [
        "DATABASE",
        "BACKUP",
        "BACKUP_SCHEDULE",
    ]


def test_what_is_wrong_names_the_id_and_the_rule() -> None:
    assert IdRules.DATABASE.explain("d") == (
        "the database id 'd' must have 2 to 30 lower-case letters, digits, '_' and '-', begin with"
        " a letter and end with a letter or a digit"
    )
