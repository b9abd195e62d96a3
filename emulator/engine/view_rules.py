"""Views follow what they read: a schema in which a view is invalid is refused."""

from __future__ import annotations

from dataclasses import replace

from ddl import steps
from ddl.schema import Schema, Type, Verbatim
from ddl.views import KIND, list_views
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.sql.compile import compile_statement
from emulator.sql.statements import CompiledQuery
from emulator.sql.types import name_of
from emulator.storage.history import table_source

Columns = tuple[tuple[str, Type], ...]


def view_columns(schema: Schema, view: Verbatim) -> Columns:
    """The columns of a view."""
    return tuple((column.name, column.type) for column in compile_view(schema, view).columns)


def compile_view(schema: Schema, view: Verbatim) -> CompiledQuery:
    """The query over the whole view. Raises SpannerError for an invalid view."""
    name = ".".join(f"`{part}`" for part in view.name.split("."))
    query = compile_statement(
        f"SELECT v.* FROM {name} AS v", schema, {}, table_source((), counted=False)
    )
    assert isinstance(query, CompiledQuery)
    return query


def check_views(before: Schema, after: Schema, step: steps.Step) -> Schema:
    """The schema with its views in an order in which they can be created. Raises SpannerError."""
    items = list_views(after)
    if not items:
        return after
    uses: dict[str, set[str]] = {}
    for view in sorted(items, key=lambda view: not defines(step, view)):
        try:
            query = compile_view(after, view)
        except SpannerError as error:
            raise refusal(step, view, error) from error
        columns = tuple((column.name, column.type) for column in query.columns)
        if defines(step, view):
            check_names(view, columns)
        else:
            check_types(before, step, view, columns)
        uses[view.name.casefold()] = {*query.views} - {view.name.casefold()}
    return replace(after, verbatim=order_views(after.verbatim, uses))


def same_object(left: Verbatim, right: Verbatim) -> bool:
    """Whether both are the same object."""
    return left.kind == right.kind and left.name.casefold() == right.name.casefold()


def defines(step: steps.Step, view: Verbatim) -> bool:
    """Whether a step is the definition of this view."""
    return isinstance(step, steps.CreateVerbatim) and same_object(step.item, view)


def refusal(step: steps.Step, view: Verbatim, error: SpannerError) -> SpannerError:
    """Spanner's error for a step that makes a view invalid."""
    if defines(step, view):
        if "is recursive" in error.message:
            return failed_precondition(
                f"Cannot replace VIEW `{view.name}` because new definition is recursive."
            )
        return invalid_argument(
            f"Error analyzing the definition of view `{view.name}`: {error.message}"
        )
    dropped = {
        steps.DropTable: "TABLE",
        steps.DropVerbatim: "VIEW",
        steps.DropIndex: "INDEX",
        steps.DropColumn: "COLUMN",
    }.get(type(step))
    if dropped is not None:
        return failed_precondition(
            f"Cannot drop {dropped} `{step_subject(step)}` on which there are dependent views: "
            f"{view.name}."
        )
    return failed_precondition(
        f"Cannot alter `{step_subject(step)}`. The new definition causes the definition of VIEW "
        f"`{view.name}` to become invalid with the following diagnostic message: {error.message}"
    )


def step_subject(step: steps.Step) -> str:
    """What a step is about."""
    match step:
        case steps.DropTable(name) | steps.DropIndex(name) | steps.DropVerbatim(_, name):
            return name
        case steps.DropColumn(table, column):
            return f"{table}.{column}"
        case steps.AlterColumn(table, column) | steps.AddColumn(table, column):
            return f"{table}.{column.name}"
        case steps.CreateVerbatim(item):
            return item.name
        case _:
            return type(step).__name__


def check_names(view: Verbatim, columns: Columns) -> None:
    """Every column of a view has a name of its own (the compiler invents $n for the others)."""
    seen: set[str] = set()
    for number, (name, _) in enumerate(columns, 1):
        repeated = name.casefold() in seen
        seen.add(name.casefold())
        if not name or repeated or name.startswith("$"):
            raise invalid_argument(
                f"Error analyzing the definition of view `{view.name}`: column {number} has no name"
                " of its own"
            )


def check_types(before: Schema, step: steps.Step, view: Verbatim, columns: Columns) -> None:
    """A step may not change the type of another view's column."""
    if not any(same_object(view, item) for item in list_views(before)):
        return
    for (name, was), (_, now) in zip(view_columns(before, view), columns, strict=False):
        if was != now:
            raise failed_precondition(
                f"Cannot alter `{step_subject(step)}`. Action would implicitly change the type of "
                f"an output column for VIEW `{view.name}` from `{name_of(was)}` to "
                f"`{name_of(now)}` ({name})."
            )


def order_views(items: tuple[Verbatim, ...], uses: dict[str, set[str]]) -> tuple[Verbatim, ...]:
    """The same objects; a view comes after those that it reads."""
    waiting = [item for item in items if item.kind == KIND]
    placed: list[Verbatim] = []
    while waiting:
        ready_names = {item.name.casefold() for item in placed}
        ready = next(item for item in waiting if uses[item.name.casefold()] <= ready_names)
        waiting.remove(ready)
        placed.append(ready)
    return (*(item for item in items if item.kind != KIND), *placed)
