"""Columns of JSON texts -> JSON arrays and objects.

A column of cells has the text ``null`` where a value is NULL; where it has no text, the cell is not
there, and its object leaves it out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.spanner.json_columns.scalars import wrap

NULL = "null"
T = TypeVar("T")
Tree: TypeAlias = "T | str | Mapping[str, Tree[T]] | tuple[Tree[T], ...]"
"""A JSON value: a constant text, what becomes a text for each row, or an object or array of such
values."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """What stands between the members of arrays and objects, and after names."""

    comma: str
    colon: str


SPACED = Punctuation(", ", ": ")
COMPACT = Punctuation(",", ":")


def replace_items(lists: pa.Array, items: pa.Array) -> pa.Array:
    """The lists with other items in place of their own, all of them in one column; NULL stays
    NULL."""
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    return pa.ListArray.from_arrays(offsets, items, mask=lists.is_null())


def join_lists(lists: pa.Array, items: pa.Array, comma: str) -> pa.Array:
    """Lists as JSON arrays, from the texts of all items; NULL stays NULL."""
    texts = replace_items(lists, pc.fill_null(items, NULL))
    return wrap(pc.binary_join(texts, comma), "[", "]")


def list_pieces(tree: Tree[T], style: Punctuation) -> Iterator[T | str]:
    """What a value is made of, in its order: constant texts, and what differs by row."""
    if isinstance(tree, Mapping):
        before = "{"
        for name, value in tree.items():
            yield f"{before}{quote_name(name)}{style.colon}"
            yield from list_pieces(value, style)
            before = style.comma
        yield "}" if tree else "{}"
    elif isinstance(tree, tuple):
        before = "["
        for value in tree:
            yield before
            yield from list_pieces(value, style)
            before = style.comma
        yield "]" if tree else "[]"
    else:
        yield tree


def merge_constants(pieces: Iterable[T | str]) -> list[T | str]:
    """The same pieces, with one text in place of texts that follow each other."""
    merged: list[T | str] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if isinstance(piece, str) and isinstance(last, str):
            merged[-1] = last + piece
        else:
            merged.append(piece)
    return merged


def join_pieces(pieces: Iterable[pa.Array | str], rows: int) -> pa.Array:
    """The pieces of each row as one text."""
    merged = merge_constants(pieces)
    if all(isinstance(piece, str) for piece in merged):
        return pa.repeat("".join(merged), rows)
    return pc.binary_join_element_wise(*merged, "")


def list_cells(cells: Mapping[str, pa.Array], style: Punctuation) -> Iterable[pa.Array | str]:
    """The pieces of a JSON object a row, of one cell of each column, in their order."""
    if any(texts.null_count for texts in cells.values()):
        return [join_present(cells, style)]
    return list_pieces(cells, style)


def join_present(cells: Mapping[str, pa.Array], style: Punctuation) -> pa.Array:
    """A JSON object a row, of the cells that are there."""
    named = [
        pc.binary_join_element_wise(f"{quote_name(name)}{style.colon}", texts, "")
        for name, texts in cells.items()
    ]
    return wrap(join_known(named, style.comma), "{", "}")


def join_known(texts: Sequence[pa.Array], comma: str) -> pa.Array:
    """The texts of each row that are there, joined; an empty one where there is none.

    An empty text comes first, and the comma after it is cut off: Arrow gives no row at all for one
    in which it skips every text.
    """
    joined = pc.binary_join_element_wise("", *texts, comma, null_handling="skip")
    return pc.binary_replace_slice(joined, 0, len(comma), "")


def quote_name(name: str) -> str:
    """A name as a JSON string."""
    return json.dumps(name, ensure_ascii=False)
