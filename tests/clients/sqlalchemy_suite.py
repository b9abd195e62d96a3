"""SQLAlchemy's compliance suite, as SQLAlchemy's own package has it, with sqlalchemy-spanner's
dialect: needs nothing but what ``make setup`` installs."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from fixtures.server import connect_other

from clients.judging import list_exceptions
from clients.outcomes import Outcome
from clients.python_packages import run_pytest
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

DATABASE = "compliance-suite"
URL = f"spanner+spanner:///projects/{PROJECT}/instances/{INSTANCE}/databases/{DATABASE}"
SCHEMA = "CREATE SCHEMA test_schema"
"""What the suite expects to be there."""
MODULES = ("cte", "dialect", "insert", "results", "select", "types")
"""Not those of DDL, reflection, sequences and views: the dialect's authors rewrote most of them,
because Spanner has no UNIQUE constraints and the dialect writes no SQL SECURITY."""
LEFT_OUT = {
    "IsOrIsNotDistinctFromTest": "Spanner has no IS DISTINCT FROM",
    "JSONTest": "the dialect writes a value of JSON that is looked up into the path as it is",
    "ReturningTest": "it expects ids that count from 1, and Spanner reverses their bits",
    "TimeMicrosecondsTest": "Spanner has no TIME",
    "TimeTest": "Spanner has no TIME",
}
"""Classes that ask for what cannot be had, and why."""
PLUGINS = ("-pno:spanner_watcher", "-pno:xdist", "-pno:hypothesispytest")
"""Those of pytest that are not loaded."""
DRIVER = "_spanner+spanner+spanner"
"""What SQLAlchemy adds to the name of each class."""
SETTINGS = """[sqla_testing]
requirement_cls = google.cloud.sqlalchemy_spanner.requirements:Requirements
profile_file = profiles.txt
"""
CONFTEST = '''
from google.cloud.sqlalchemy_spanner.sqlalchemy_spanner import SpannerDDLCompiler
from sqlalchemy.dialects import registry

registry.register("spanner", "google.cloud.sqlalchemy_spanner", "SpannerDialect")
write_key = SpannerDDLCompiler.post_create_table

def write_key_if_any(compiler, table):
    """The dialect writes PRIMARY KEY () for a table without a key, which has one row at most."""
    return write_key(compiler, table) if table.primary_key.columns else ""

SpannerDDLCompiler.post_create_table = write_key_if_any
from sqlalchemy.testing.plugin.pytestplugin import *
'''


def run(place: Workplace) -> list[Outcome]:
    """Runs the modules in a database of their own."""
    source = place.folder / "source"
    source.mkdir(exist_ok=True)
    write_files(source)
    database = connect_other(place.address, INSTANCE).database(DATABASE, ddl_statements=[SCHEMA])
    database.create().result(60)
    arguments = ["--dburi", URL, "--maxfail=1000", "--timeout=300", "--tb=no", "test_suite.py"]
    outcomes = run_pytest(place, Path(sys.executable), source, [*PLUGINS, *arguments], {})
    return [replace(each, case=name_case(each.case)) for each in outcomes]


def name_case(case: str) -> str:
    """The class and the function of a case."""
    return case.removeprefix("test_suite.").replace(DRIVER, "", 1)


def write_files(folder: Path) -> None:
    """How pytest finds the suite and the dialect."""
    (folder / "setup.cfg").write_text(SETTINGS)
    (folder / "conftest.py").write_text(CONFTEST)
    lines = [f"from sqlalchemy.testing.suite.test_{name} import *\n" for name in MODULES]
    lines += [f"del {name}  # {why}\n" for name, why in LEFT_OUT.items()]
    (folder / "test_suite.py").write_text("".join(lines))


def list_examples(test: str, *examples: str) -> list[str]:
    """The cases of a test with parameters."""
    return [f"{test}[{example}]" for example in examples]


SUITE = Suite(
    "sqlalchemy-own",
    f"sqlalchemy {version('sqlalchemy')}, sqlalchemy-spanner {version('sqlalchemy-spanner')}",
    run,
    list_exceptions(
        {
            "the driver returns BYTES in base64, and the dialect does not decode them": (
                *list_examples("BinaryTest.test_binary_roundtrip", r"7\xe7\x9f", "this is binary"),
                "BinaryTest.test_pickle_roundtrip",
            ),
            "the driver returns times with a time zone, which the suite expects without one": (
                "DateTimeCoercedToDateTimeTest.test_select_direct",
                "DateTimeMicrosecondsTest.test_round_trip",
                "DateTimeMicrosecondsTest.test_round_trip_decorated",
                "DateTimeTest.test_round_trip",
                "DateTimeTest.test_round_trip_decorated",
                "DateTimeTest.test_select_direct",
                "RowFetchTest.test_row_w_scalar_select",
            ),
            "the dialect sends a timestamp for a DATE, and a FLOAT64 for a NUMERIC": (
                "DateTimeCoercedToDateTimeTest.test_null_bound_comparison",
                "DateTimeCoercedToDateTimeTest.test_round_trip",
                "DateTimeCoercedToDateTimeTest.test_round_trip_decorated",
                "NumericTest.test_numeric_as_decimal",
                "NumericTest.test_numeric_as_float",
                "NumericTest.test_numeric_null_as_float",
            ),
            "it writes more decimal places than the nine of a NUMERIC": (
                "NumericTest.test_enotation_decimal",
                "NumericTest.test_precision_decimal",
                *list_examples(
                    "TrueDivTest.test_truediv_divisor",
                    "numeric_tiny_divisor-typed",
                    "numeric_tiny_divisor-untyped_function",
                ),
            ),
            "an integer that is no INT64 is no literal of Spanner": list_examples(
                "TrueDivTest.test_truediv_divisor",
                "numeric_38_digit_divisor-typed",
                "numeric_38_digit_divisor-untyped_function",
            ),
            "the dialect divides integers with /, which gives a FLOAT64": (
                "TrueDivTest.test_floordiv_integer[15-10-1]",
                "TrueDivTest.test_floordiv_integer_bound",
            ),
            "the dialect casts to STRING(50), and a CAST has no length": (
                "CastTypeDecoratorTest.test_special_type",
            ),
            "the driver takes text that is not ASCII for a name that it has to quote": (
                "StringTest.test_literal_non_ascii",
                "TextTest.test_literal_non_ascii",
                "UnicodeTextTest.test_literal",
                "UnicodeTextTest.test_literal_non_ascii",
                "UnicodeVarcharTest.test_literal",
                "UnicodeVarcharTest.test_literal_non_ascii",
            ),
            "Spanner has no columns of such names": list_examples(
                "DifficultParametersTest.test_round_trip_same_named_column",
                "%percent",
                "___name",
                "_name",
                "_starts_with_underscore",
                "more :: %colons%",
                "per % cent",
                "percent%(ens)yah",
                "percent%signs",
                "q?marks",
            ),
            "a query without FROM has a WHERE, which Spanner refuses": (
                "ExistsTest.test_select_exists",
                "ExistsTest.test_select_exists_false",
                *list_examples(
                    "IntegerTest.test_huge_int_auto_accommodation",
                    *("-1376537018368127", "-2147483646", "-2147483647", "-2147483648"),
                    *("-2147483649", "0", "1376537018368127", "2147483646", "2147483647"),
                    *("2147483648", "2147483649"),
                ),
            ),
            "LIMIT and OFFSET of Spanner are literals or parameters": (
                "FetchLimitOffsetTest.test_bound_offset",
                "FetchLimitOffsetTest.test_expr_limit",
                "FetchLimitOffsetTest.test_expr_limit_offset",
                "FetchLimitOffsetTest.test_expr_limit_simple_offset",
                "FetchLimitOffsetTest.test_expr_offset",
                "FetchLimitOffsetTest.test_simple_limit_expr_offset",
            ),
            "the dialect writes no ESCAPE, which Spanner does not have": (
                "LikeFunctionsTest.test_contains_autoescape",
                "LikeFunctionsTest.test_contains_autoescape_escape",
                "LikeFunctionsTest.test_contains_escape",
                "LikeFunctionsTest.test_endswith_autoescape",
                "LikeFunctionsTest.test_endswith_autoescape_escape",
                "LikeFunctionsTest.test_endswith_escape",
                "LikeFunctionsTest.test_startswith_autoescape",
                "LikeFunctionsTest.test_startswith_autoescape_escape",
                "LikeFunctionsTest.test_startswith_escape",
            ),
            "Spanner has no INSERT behind WITH, no WITH t (columns), no INSERT of nothing": (
                "CTETest.test_insert_from_select_round_trip",
                "CTETest.test_select_recursive_round_trip",
                "InsertBehaviorTest.test_empty_insert",
                "InsertBehaviorTest.test_empty_insert_multiple",
            ),
            "it expects ids that count from 1, and Spanner reverses their bits": (
                "IdentityAutoincrementTest.test_autoincrement_with_identity",
            ),
            "it expects other words or parameters of SQLAlchemy than it has with this dialect": (
                "PostCompileParamsTest.test_execute",
                "PostCompileParamsTest.test_execute_expanding_plus_literal_execute",
                "ReturningGuardsTest.test_delete_many",
                "ReturningGuardsTest.test_update_many",
            ),
            "SQLAlchemy warns of a product of tables: the dialect renames one of another schema": (
                "SameNamedSchemaTableTest.test_simple_join_both_tables",
                "SameNamedSchemaTableTest.test_simple_join_whereclause_only",
                "SameNamedSchemaTableTest.test_subquery",
            ),
        }
    ),
)
