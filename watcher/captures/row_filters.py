"""``where`` of a table at work: as a condition that Spanner checks, and over Arrow columns for what
Spanner reads without SQL."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import Type, TypeCode
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.results.columns import TIMESTAMP
from watcher.spanner.results.timestamp_columns import truncate_timestamps
from watcher.spanner.sql import RowCondition, WireValue, all_of, any_of
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.predicates import (
    Among,
    Compare,
    Either,
    Every,
    IsNull,
    Literal,
    Matches,
    MatchKind,
    Negation,
    OtherColumn,
    Predicate,
    RowFilter,
)

Comparison = Callable[[pa.Array, pa.Array | pa.Scalar], pa.Array]
COMPARISONS: Mapping[str, Comparison] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
SEARCHES: Mapping[MatchKind, Callable[..., pa.Array]] = {
    MatchKind.START: pc.starts_with,
    MatchKind.END: pc.ends_with,
    MatchKind.ANYWHERE: pc.match_substring,
}


@dataclass(slots=True)
class FilterText:
    """A filter as a condition: names quoted, values as parameters."""

    sql: SqlDialect
    columns: Mapping[str, Type]
    params: dict[str, WireValue] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def render(self, predicate: Predicate) -> str:
        """A condition."""
        match predicate:
            case IsNull(column):
                return f"{self.sql.quote_column(column)} IS NULL"
            case Compare(column, sign, value):
                return f"{self.sql.quote_column(column)} {sign} {self._write(column, value)}"
            case Among(column, values):
                listed = ", ".join(self._bind(column, value) for value in values)
                return f"{self.sql.quote_column(column)} IN ({listed})"
            case Matches(column, kind, text):
                return self._search(self.sql.quote_column(column), kind, self._bind(column, text))
            case Negation(operand):
                return f"NOT ({self.render(operand)})"
            case Every(operands):
                return all_of(map(self.render, operands))
            case Either(operands):
                return any_of(map(self.render, operands))

    def _search(self, name: str, kind: MatchKind, text: str) -> str:
        match kind:
            case MatchKind.START:
                return f"STARTS_WITH({name}, {text})"
            case MatchKind.END:
                return self.sql.ends_with(name, text)
            case MatchKind.ANYWHERE:
                return f"STRPOS({name}, {text}) > 0"

    def _write(self, column: str, value: Literal | OtherColumn) -> str:
        if isinstance(value, OtherColumn):
            return self.sql.quote_column(value.name)
        return self._bind(column, value)

    def _bind(self, column: str, value: Literal) -> str:
        name = f"where{len(self.params)}"
        self.types[name] = self.columns[column]
        self.params[name] = encode(value, self.columns[column].code)
        return f"@{name}"


def encode(value: Literal, code: TypeCode) -> WireValue:
    """A value as Spanner's API takes it."""
    if isinstance(value, bool | str | float):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if code is TypeCode.TIMESTAMP and isinstance(value, int):
        return format_timestamp(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def render_filter(row_filter: RowFilter, sql: SqlDialect) -> RowCondition:
    """A filter as a condition of a query on its table."""
    text = FilterText(sql, dict(row_filter.columns))
    return RowCondition(text.render(row_filter.predicate), text.params, text.types)


def select_rows(row_filter: RowFilter, columns: Mapping[str, pa.Array]) -> pa.Array:
    """Which rows a filter keeps: true or false for each. TIMESTAMPs are Arrow's."""
    return pc.fill_null(evaluate(row_filter.predicate, columns), False)


def find_kept(row_filter: RowFilter, batch: pa.RecordBatch) -> pa.Array:
    """The same of rows that have the filter's columns, however TIMESTAMPs were read."""
    columns = {
        name: truncate_timestamps(batch.column(name))
        if type_.code is TypeCode.TIMESTAMP and pa.types.is_string(batch.column(name).type)
        else batch.column(name)
        for name, type_ in row_filter.columns
    }
    return select_rows(row_filter, columns)


def evaluate(predicate: Predicate, columns: Mapping[str, pa.Array]) -> pa.Array:
    """What a condition is for each row; NULL is unknown, as in SQL."""
    match predicate:
        case IsNull(column):
            return pc.is_null(columns[column])
        case Compare(column, sign, value):
            values = columns[column]
            if isinstance(value, OtherColumn):
                return COMPARISONS[sign](values, columns[value.name])
            return COMPARISONS[sign](values, convert(value, values.type))
        case Among(column, literals):
            values = columns[column]
            each = [COMPARISONS["="](values, convert(value, values.type)) for value in literals]
            return join(pc.or_kleene, each)
        case Matches(column, kind, text):
            return SEARCHES[kind](columns[column], pattern=str(text))
        case Negation(operand):
            return pc.invert(evaluate(operand, columns))
        case Every(operands):
            return join(pc.and_kleene, [evaluate(each, columns) for each in operands])
        case Either(operands):
            return join(pc.or_kleene, [evaluate(each, columns) for each in operands])


def join(connect: Callable[[pa.Array, pa.Array], pa.Array], parts: list[pa.Array]) -> pa.Array:
    """Several conditions as one."""
    joined = parts[0]
    for part in parts[1:]:
        joined = connect(joined, part)
    return joined


def convert(value: Literal, type_: pa.DataType) -> pa.Scalar:
    """A value as one of a column."""
    if pa.types.is_timestamp(type_) and isinstance(value, int):
        return pa.scalar(value, pa.int64()).cast(TIMESTAMP)
    return pa.scalar(value, type_)
