"""Forms of GoogleSQL that Spanner or this server lacks: each is refused by its name."""

from __future__ import annotations

from emulator import errors
from emulator.sql.grammar.outline import FeatureError, Outline

FEATURES = {
    "clamped": "CLAMPED BETWEEN",
    "argument_alias": "An alias of an argument",
    "aggregate_group": "GROUP BY in an aggregate function",
    "dml_offset": "WITH OFFSET in DML",
    "group_rows": "GROUP ROWS",
    "lateral": "LATERAL",
    "limit_all": "LIMIT ALL",
    "model": "A MODEL as an argument (ML.PREDICT)",
    "natural": "NATURAL JOIN",
    "nested_dml": "Nested DML",
    "pivot": "PIVOT",
    "positional_parameter": "A positional parameter",
    "recursive": "WITH RECURSIVE",
    "recursion_depth": "WITH DEPTH",
    "select_with": "SELECT WITH",
    "set_corresponding": "CORRESPONDING in a set operation",
    "set_columns": "BY NAME in a set operation",
    "set_outer": "An outer set operation",
    "system_time": "FOR SYSTEM_TIME AS OF",
    "system_variable": "A system variable",
    "table_query": "TABLE as a query",
    "unpivot": "UNPIVOT",
    "unsupported_literal": "A literal of type DATETIME, TIME, BIGNUMERIC or RANGE",
    "with_report": "WITH REPORT",
    "with_weight": "WITH WEIGHT",
}
"""What this server lacks."""
TYPED_ROWS = "select_as"
REFUSED = {"null_order": "NULLS FIRST and NULLS LAST are not supported"}
"""What Spanner lacks, and what it says then."""


def refuse_features(outline: Outline) -> None:
    """Raises INVALID_ARGUMENT for the first form that Spanner lacks, FeatureError for the first
    that the server lacks."""
    for part in outline.find(*REFUSED):
        raise errors.invalid_argument(REFUSED[part.rule])
    if any(part.has("path") for part in outline.find(TYPED_ROWS)):
        raise FeatureError("SELECT AS with the name of a type")
    for part in outline.find(*FEATURES):
        raise FeatureError(FEATURES[part.rule])
