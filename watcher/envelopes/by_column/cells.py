"""The cells of a table's columns -> JSON texts in the form that an envelope writes."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from ddl.model.schema import Type, TypeCode
from watcher.envelopes.message import json_text
from watcher.envelopes.values import CellStyle, parse_finite, parse_json_cell
from watcher.json_columns.objects import NULL, join_lists
from watcher.json_columns.scalars import render_scalars
from watcher.json_columns.strings import wrap


def render_cells(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """The JSON texts of a column as Arrow keeps it; of NULL, ``null``."""
    return pc.fill_null(render_values(column, type_, style), NULL)


def render_values(column: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """As ``render_cells``, where NULL stays NULL."""
    if type_.code is TypeCode.ARRAY and type_.element is not None:
        items = render_values(column.flatten(), type_.element, style)
        return join_lists(column, items, style.punctuation.comma)
    if type_.code.is_json and style.json_nested:
        return render_nested(column)
    texts = render_scalars(column)
    return quote_integers(texts, type_, style)


def quote_integers(texts: pa.Array, type_: Type, style: CellStyle) -> pa.Array:
    """The texts of INT64 in quotes, where an envelope wants them so."""
    as_text = type_.code is TypeCode.INT64 and style.int64_as_text
    return wrap(texts, '"', '"') if as_text else texts


def render_nested(column: pa.Array) -> pa.Array:
    """JSON columns as JSON. Spanner writes them compactly: then all of them are as they should be,
    which one pass over the whole column shows. Raises EnvelopeError for what is not JSON."""
    known = column.drop_null()
    joined = f"[{','.join(known.to_pylist())}]"
    try:
        parsed = json.loads(joined, parse_float=parse_finite, parse_constant=parse_finite)
    except ValueError:
        parsed = None
    if parsed is not None and len(parsed) == len(known) and json_text(parsed) == joined:
        return column
    texts = (None if t is None else json_text(parse_json_cell(t)) for t in column.to_pylist())
    return pa.array(texts, pa.string())
