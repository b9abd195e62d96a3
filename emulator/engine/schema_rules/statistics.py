"""Packages of optimizer statistics: ANALYZE makes one, ALTER STATISTICS says whether it may be
collected. They change no answer; their names are checked where a statement or an option has one."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.engine.schema_rules.syntax import refuse_syntax
from emulator.errors import invalid_argument, not_found
from emulator.values.forms import timestamp_from_micros
from spanner_schema.model import steps
from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.syntax.clauses import read_option_list
from spanner_schema.syntax.reader import TokenReader

ANALYZE, ALTER = "ANALYZE", "ALTER STATISTICS"
OPTION = "allow_gc"
POSTGRES_SCHEMA = "SPANNER"
TRUTHS = {"true": True, "false": False}
SECOND = 1_000_000


def name_package(step: steps.Step, schema: Schema, micros: int) -> steps.Step:
    """ANALYZE with the name of the package that it makes, as the file keeps the statement."""
    if not isinstance(step, steps.OtherStatement) or step.kind != ANALYZE:
        return step
    reader = TokenReader(step.text, schema.dialect)
    try:
        reader.expect(ANALYZE)
        reader.accept(";")
        reader.expect_end()
    except DdlSyntaxError as error:
        raise refuse_syntax(step.text, error) from error
    while (name := spell_name(micros)) in schema.statistics:
        micros += SECOND
    return steps.OtherStatement(ANALYZE, f"{ANALYZE} {name}")


def spell_name(micros: int) -> str:
    """How Spanner calls a package whose construction began at this time."""
    date, time = timestamp_from_micros(micros)[:19].split("T")
    return f"analyze_{date.replace('-', '')}_{time.replace(':', '_')}UTC"


def packages_after(schema: Schema, step: steps.Step) -> Mapping[str, bool]:
    """The packages of the schema after a step, and whether each may be collected."""
    if not isinstance(step, steps.OtherStatement) or step.kind not in {ANALYZE, ALTER}:
        return schema.statistics
    if step.kind == ALTER:
        name, collected = read_alteration(step.text, schema.dialect)
        if name not in schema.statistics:
            raise not_found(f"Statistics package not found: {name}")
        return {**schema.statistics, name: collected}
    # The file of an older server has ANALYZE without a name, which made no package.
    _, _, name = step.text.partition(" ")
    return {**schema.statistics, name: True} if name else schema.statistics


def read_alteration(text: str, dialect: Dialect) -> tuple[str, bool]:
    """The package of an ALTER STATISTICS, and whether it may be collected."""
    reader = TokenReader(text, dialect)
    reader.expect(*ALTER.split())
    if dialect is Dialect.POSTGRESQL:
        reader.expect(POSTGRES_SCHEMA, ".")
    name = reader.read_name("the name of a statistics package")
    reader.expect("SET", "OPTIONS")
    options = read_option_list(reader)
    reader.accept(";")
    reader.expect_end()
    for option, value in options:
        if option != OPTION:
            raise invalid_argument(f"Option: {option} is unknown.")
        if value.lower() not in TRUTHS:
            raise invalid_argument(f"Unexpected value for option: {OPTION}. It is true or false.")
    if not options:
        raise invalid_argument(f"ALTER STATISTICS must set the option {OPTION}.")
    return name, TRUTHS[options[-1][1].lower()]
