"""Columns of JSON texts -> JSON arrays and objects.

A column of cells has the text ``null`` where a value is NULL; where it has no text, the cell is not
there, and its object leaves it out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.json_columns.strings import wrap

NULL = "null"
Cells: TypeAlias = "Mapping[str, pa.Array | str | Cells]"
"""Columns of cells by name: one text where all rows have the same, and the cells of an object that
has every one of them."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """What stands between the members of arrays and objects, and after names."""

    comma: str
    colon: str


SPACED = Punctuation(", ", ": ")
COMPACT = Punctuation(",", ":")


def join_lists(lists: pa.Array, items: pa.Array, comma: str) -> pa.Array:
    """Lists as JSON arrays, from the texts of all items; NULL stays NULL."""
    lengths = pc.fill_null(lists.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    texts = pa.ListArray.from_arrays(offsets, pc.fill_null(items, NULL), mask=lists.is_null())
    return wrap(pc.binary_join(texts, comma), "[", "]")


def join_array(cells: Sequence[pa.Array], rows: int, comma: str) -> pa.Array:
    """A JSON array a row, of one cell of each column."""
    if not cells:
        return pa.repeat("[]", rows)
    return wrap(pc.binary_join_element_wise(*cells, comma), "[", "]")


def join_object(cells: Cells, rows: int, style: Punctuation) -> pa.Array:
    """A JSON object a row, of one cell of each column, in their order."""
    if any(isinstance(texts, pa.Array) and texts.null_count for texts in cells.values()):
        return join_present(cells, style)
    pieces = merge_constants(list_pieces(cells, style))
    if len(pieces) == 1:
        return pa.repeat(pieces[0], rows)
    return pc.binary_join_element_wise(*pieces, "")


def list_pieces(cells: Cells, style: Punctuation) -> Iterator[pa.Array | str]:
    """The texts that an object is made of, in their order."""
    before = "{"
    for name, texts in cells.items():
        yield f"{before}{quote_name(name)}{style.colon}"
        if isinstance(texts, Mapping):
            yield from list_pieces(texts, style)
        else:
            yield texts
        before = style.comma
    yield "}" if cells else "{}"


def merge_constants(pieces: Iterable[pa.Array | str]) -> list[pa.Array | str]:
    """The same pieces, with one text in place of texts that follow each other."""
    merged: list[pa.Array | str] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def join_present(cells: Cells, style: Punctuation) -> pa.Array:
    """As ``join_object``, of the cells that are there."""
    members = [
        pc.binary_join_element_wise(f"{quote_name(name)}{style.colon}", texts, "")
        for name, texts in cells.items()
    ]
    return wrap(join_known(members, style.comma), "{", "}")


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
