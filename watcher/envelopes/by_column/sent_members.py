"""The JSON objects of a change stream, read by Arrow: no Python object for a member.

Arrow gives NULL for a member that is not there as for one that is NULL. Where that matters and
cannot be told, the objects are parsed: see ``sent_objects``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ddl.model.schema import Type
from watcher.envelopes.by_column.sent_cells import choose_sent_type, pass_on
from watcher.envelopes.values import CellStyle
from watcher.json_columns.base64_texts import single_list
from watcher.json_columns.objects import NULL

EMPTY = "{}"


def read_members(
    texts: pa.Array, columns: Sequence[tuple[str, Type]]
) -> dict[str, pa.Array] | None:
    """The members of a column of JSON objects as they were sent, each as a column; NULL where an
    object does not have it. None where objects have other members, or a value is not of its usual
    kind."""
    filled = pc.fill_null(texts, EMPTY)
    joined = pc.binary_join(single_list(filled), "\n")[0].as_buffer()
    try:
        read = pj.read_json(
            pa.BufferReader(joined),
            read_options=pj.ReadOptions(use_threads=False, block_size=joined.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(n, choose_sent_type(type_)) for n, type_ in columns]),
                unexpected_field_behavior="error",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if read.num_rows != len(texts):
        return None
    return {name: pa.concat_arrays(read.column(name).chunks) for name, _ in columns}


def render_members(
    texts: pa.Array, columns: Sequence[tuple[str, Type]], style: CellStyle
) -> dict[str, pa.Array] | None:
    """The members of a column of JSON objects as JSON texts, by name; NULL where an object does not
    have it. Names that no object has are left out. None where objects have other members, or a
    value is not written as it was sent."""
    members = read_members(texts, columns) if all(map(is_plain, dict(columns))) else None
    if members is None:
        return None
    cells = {}
    for name, type_ in columns:
        there = find_objects_with(name, members[name], texts)
        if there is not None and not pc.any(there).as_py():
            continue
        rendered = pass_on(members[name], type_, style)
        if rendered is None:
            return None
        rendered = pc.fill_null(rendered, NULL)
        cells[name] = rendered if there is None else pc.if_else(there, rendered, None)
    return cells


def is_plain(name: str) -> bool:
    """Whether JSON has one way to write a name."""
    return name.isascii() and name.isidentifier()


def find_objects_with(name: str, values: pa.Array, texts: pa.Array) -> pa.Array | None:
    """Which objects have a member, be it NULL; None: all of them. ``name`` is a plain one."""
    if not values.null_count:
        return None
    filled = pc.fill_null(texts, EMPTY)
    unsure = pc.and_(values.is_null(), pc.not_equal(filled, EMPTY))
    # In a string a quote has a backslash before it: what matches is the name of a member.
    named = pc.match_substring_regex(filled.filter(unsure), rf'"{name}"\s*:')
    there = pc.replace_with_mask(values.is_valid(), unsure, named)
    return None if pc.all(there).as_py() else there
