"""Views follow what they read: a schema in which a view is invalid is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from emulator.engine.function_rules import check_function, name_kind
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.limits import VIEW_DEPTH_MAX
from emulator.sql.compile import compile_statement
from emulator.sql.statements import CompiledQuery
from emulator.sql.types import name_of
from emulator.sql.views import check_strict_names, has_value_rows
from emulator.storage.history import table_source
from emulator.values.requests import ResultColumn
from spanner_schema.model import steps
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect, Schema, Verbatim
from spanner_schema.syntax.functions import KIND as FUNCTION
from spanner_schema.syntax.property_graphs import KIND as PROPERTY_GRAPH
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.render import quote_name
from spanner_schema.syntax.views import KIND, find_view, list_views

Columns = tuple[tuple[str, Type], ...]
ORDERED = frozenset({KIND, FUNCTION})


def view_columns(schema: Schema, view: Verbatim) -> Columns:
    """The columns of a view."""
    return tuple((column.name, column.type) for column in compile_view(schema, view).columns)


def compile_view(schema: Schema, view: Verbatim) -> CompiledQuery:
    """The query over the whole view. Raises SpannerError for an invalid view."""
    name = quote_name(view.name, schema.dialect)
    query = compile_statement(
        f"SELECT v.* FROM {name} AS v", schema, {}, table_source((), counted=False)
    )
    assert isinstance(query, CompiledQuery)
    return query


def check_views(before: Schema, after: Schema, step: steps.Step) -> Schema:
    """The schema with its views and functions in an order in which they can be created.

    Raises SpannerError for a step that makes one of them invalid.
    """
    items = [item for item in after.verbatim if item.kind in ORDERED]
    if not items:
        return after
    uses: dict[str, set[str]] = {}
    for view in sorted(items, key=lambda view: not defines(step, view)):
        if view.kind == FUNCTION:
            uses[view.name.casefold()] = check_function(before, after, step, view)
            continue
        try:
            query = compile_view(after, view)
            if defines(step, view):
                if after.dialect is Dialect.GOOGLESQL:
                    check_strict_names(view.text, list_bundle_types(after))
                check_names(after, view, query.columns)
        except SpannerError as error:
            raise refusal(before, step, view, error) from error
        columns = tuple((column.name, column.type) for column in query.columns)
        if not defines(step, view):
            check_types(before, step, view, columns)
        uses[view.name.casefold()] = {*query.views, *query.functions} - {view.name.casefold()}
    check_depth(uses)
    return replace(after, verbatim=order_views(after.verbatim, uses))


def check_depth(uses: Mapping[str, set[str]]) -> None:
    """How deep views refer to views. Raises FAILED_PRECONDITION."""
    depths: dict[str, int] = {}

    def measure(view: str) -> int:
        if view not in depths:
            depths[view] = max((1 + measure(each) for each in uses.get(view, ())), default=0)
        return depths[view]

    for view in uses:
        if measure(view) > VIEW_DEPTH_MAX:
            raise failed_precondition(
                f"View `{view}` refers to views that refer to views, more than {VIEW_DEPTH_MAX}"
                " deep."
            )


def same_object(left: Verbatim, right: Verbatim) -> bool:
    """Whether both are the same object."""
    return left.kind == right.kind and left.name.casefold() == right.name.casefold()


def defines(step: steps.Step, view: Verbatim) -> bool:
    """Whether a step is the definition of this view."""
    return isinstance(step, steps.CreateVerbatim) and same_object(step.item, view)


def refusal(before: Schema, step: steps.Step, view: Verbatim, error: SpannerError) -> SpannerError:
    """Spanner's error for a step that makes a view invalid."""
    if defines(step, view):
        if "is recursive" in error.message:
            return failed_precondition(
                f"Cannot replace VIEW `{view.name}` because new definition is recursive."
            )
        if find_view(before, view.name) is not None:
            return failed_precondition(
                f"Cannot replace VIEW `{view.name}` because new definition is invalid with the "
                f"following diagnostic message:\n\n{error.message}"
            )
        return invalid_argument(
            f"Error analyzing the definition of view `{view.name}`: {error.message}"
        )
    dropped = {
        steps.DropTable: "TABLE",
        steps.DropVerbatim: name_kind(step.kind) if isinstance(step, steps.DropVerbatim) else "",
        steps.DropIndex: "INDEX",
        steps.DropColumn: "column",
    }.get(type(step))
    if dropped is not None:
        return failed_precondition(
            f"Cannot drop {dropped} `{step_subject(step)}` on which there are dependent views: "
            f"{view.name}."
        )
    return failed_precondition(
        f"Cannot alter {altered_kind(step)}`{step_subject(step)}`. The new definition causes the "
        f"definition of VIEW `{view.name}` to become invalid with the following diagnostic "
        f"message: {error.message}"
    )


def step_subject(step: steps.Step) -> str:
    """What a step is about."""
    match step:
        case steps.DropTable(name) | steps.DropIndex(name) | steps.DropVerbatim(_, name):
            return name
        case steps.DropColumn(_, column):
            return column
        case steps.AlterColumn(table, column) | steps.AddColumn(table, column):
            return f"{table}.{column.name}"
        case steps.CreateVerbatim(item):
            return item.name
        case _:
            return type(step).__name__


def altered_kind(step: steps.Step) -> str:
    """The kind of what a step changes, with a blank after it."""
    if isinstance(step, steps.AlterColumn | steps.AddColumn):
        return "column "
    return f"{name_kind(step.item.kind)} " if isinstance(step, steps.CreateVerbatim) else ""


def check_names(schema: Schema, view: Verbatim, columns: Sequence[ResultColumn]) -> None:
    """Every column of a view has a name of its own (the compiler invents $n for the others)."""
    values = schema.dialect is Dialect.GOOGLESQL
    if values and has_value_rows(view.text, list_bundle_types(schema)):
        return
    seen: set[str] = set()
    for number, column in enumerate(columns, 1):
        folded = column.name.casefold()
        if not folded or folded.startswith("$"):
            raise invalid_argument(
                f"CREATE VIEW columns must be named, but column {number} has no name"
            )
        if folded in seen:
            raise invalid_argument(f"CREATE VIEW has columns with duplicate name {column.name}")
        seen.add(folded)


def check_types(before: Schema, step: steps.Step, view: Verbatim, columns: Columns) -> None:
    """A step may not change the type of another view's column."""
    if not any(same_object(view, item) for item in list_views(before)):
        return
    for (_, was), (_, now) in zip(view_columns(before, view), columns, strict=False):
        if was != now:
            raise failed_precondition(
                f"Cannot alter {altered_kind(step)}`{step_subject(step)}`. Action would implicitly "
                f"change the type of an output column for VIEW `{view.name}` from "
                f"`{name_of(was)}` to `{name_of(now)}`.\nTip: Give explicit type to output columns "
                "in the VIEW definition before making this change by adding casts/conversions to "
                "the intended final output type."
            )


def order_views(items: tuple[Verbatim, ...], uses: dict[str, set[str]]) -> tuple[Verbatim, ...]:
    """The same objects; a view or a function comes after those that it reads, a graph after all
    views."""
    waiting = [item for item in items if item.kind in ORDERED]
    placed: list[Verbatim] = []
    while waiting:
        ready_names = {item.name.casefold() for item in placed}
        ready = next(item for item in waiting if uses[item.name.casefold()] <= ready_names)
        waiting.remove(ready)
        placed.append(ready)
    graphs = [item for item in items if item.kind == PROPERTY_GRAPH]
    others = (item for item in items if item.kind not in {*ORDERED, PROPERTY_GRAPH})
    return (*others, *placed, *graphs)
