"""The JSON objects of a change stream, parsed, and their members as columns.

The changes of a batch have few sets of names: a change, its row, an empty object of a delete. The
values of all objects with the same names are listed at once, and put in their places by Arrow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.json_columns.base64_texts import single_list
from watcher.spanner.results.sent_values import UnexpectedValueError

RUN_ROWS = 500
"""Objects are parsed and taken apart in runs that fit into a processor's cache."""
SentObject = dict[str, object]
"""A JSON object of a mod, parsed."""


def parse_objects(texts: pa.Array) -> list[SentObject]:
    """The JSON objects of a column, parsed in one call; an empty one for NULL."""
    joined = pc.binary_join(single_list(pc.fill_null(texts, "{}")), ",")[0].as_py()
    objects: list[SentObject] = json.loads(f"[{joined}]")
    if len(objects) != len(texts):
        raise UnexpectedValueError("Spanner sent a text that is not one JSON object")
    return objects


@dataclass(frozen=True, slots=True)
class SameNames:
    """Objects that have the same names in the same order: their places, and their values, object by
    object."""

    names: tuple[str, ...]
    places: list[int]
    values: list[object]

    def list_values(self, name: str) -> list[object]:
        """The values of one name."""
        return self.values[self.names.index(name) :: len(self.names)]


@dataclass(frozen=True, slots=True)
class Members:
    """The values of one name. ``places`` says for each object which of them is its own, NULL where
    it has none; None: each object has the one at its own place."""

    values: list[object]
    places: pa.Array | None


@dataclass(frozen=True, slots=True)
class SentObjects:
    """The objects of a column, by the names that they have."""

    rows: int
    groups: tuple[SameNames, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names in any of the objects."""
        return frozenset(chain.from_iterable(each.names for each in self.groups))

    def find_members(self, name: str) -> Members:
        """The values of a name, and which object has them."""
        having = [each for each in self.groups if name in each.names]
        values = list(chain.from_iterable(each.list_values(name) for each in having))
        if len(having) == len(self.groups) == 1:
            return Members(values, None)
        places = np.full(self.rows, -1)
        places[list(chain.from_iterable(each.places for each in having))] = np.arange(len(values))
        return Members(values, pa.array(places, mask=places < 0))


def read_objects(texts: pa.Array) -> SentObjects:
    """The JSON objects of a column; NULL is an empty one."""
    groups: dict[tuple[str, ...], SameNames] = {}
    for start in range(0, len(texts), RUN_ROWS):
        for place, each in enumerate(parse_objects(texts.slice(start, RUN_ROWS)), start):
            names = tuple(each)
            group = groups.get(names)
            if group is None:
                group = groups[names] = SameNames(names, [], [])
            group.places.append(place)
            group.values.extend(each.values())
    return SentObjects(len(texts), tuple(groups.values()))
