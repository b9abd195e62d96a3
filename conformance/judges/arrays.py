"""The judge of millions of rows: whether everything that was written was delivered, once, in order,
and nothing else. It asks what ``polled_windows`` asks, and counts, by arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]
"""Rows that were written or delivered: ``table``, ``key``, ``version`` and ``commit``, its commit
timestamp; delivered ones also ``at``, when they came. Windows: ``table``, ``start``, ``end``."""
Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What was found, in rows.

    ``superseded`` versions were rightly left out: a newer one of the same key was in their window.
    ``missing`` were lost. ``invented`` were never written, ``wrong`` have another row's content.
    ``duplicates`` came again. ``reordered`` came after a newer version of their key.
    """

    written: int
    delivered: int
    superseded: int
    missing: int
    invented: int
    wrong: int
    duplicates: int
    reordered: int

    @property
    def lost_nothing(self) -> bool:
        """Everything arrived, and all of it was written."""
        return not (self.missing or self.invented or self.wrong)

    @property
    def exact(self) -> bool:
        """Also nothing twice, and nothing out of order."""
        return self.lost_nothing and not (self.duplicates or self.reordered)


def find_indexes(delivered: Records, written: Records) -> Indexes:
    """For each delivered row its index in ``written``; -1 for one that was never written."""
    columns = [
        np.concatenate([written[name], delivered[name]]) for name in ("commit", "key", "table")
    ]
    order = np.lexsort(columns)
    ordered = [column[order] for column in columns]
    differs = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(differs)])[: len(order)]
    index = np.full(len(order) + 1, -1, np.int64)
    index[numbers[: len(written)]] = np.arange(len(written))
    return np.asarray(index[numbers[len(written) :]], np.int64)


def verify(
    written: Records, delivered: Records, windows: Records, every_version: bool = False
) -> RunVerdict:
    """Compares. With ``windows`` exactly: each delivers the newest version of each key in it.

    Without windows (a system that has none) the newest version of every key must have come, and
    any older one may have been superseded: less strict, because nobody can tell.
    With ``every_version`` (change streams) nothing is superseded.
    """
    indexes = find_indexes(delivered, written)
    known = indexes >= 0
    got = np.unique(indexes[known])
    expected = (
        np.ones(len(written), bool) if every_version else find_newest_in_windows(written, windows)
    )
    came = np.zeros(len(written), bool)
    came[got] = True
    missing = int(np.count_nonzero(expected & ~came))
    return RunVerdict(
        written=len(written),
        delivered=len(delivered),
        superseded=len(written) - len(got) - missing,
        missing=missing,
        invented=int(np.count_nonzero(~known)),
        wrong=int(
            np.count_nonzero(delivered["version"][known] != written["version"][indexes[known]])
        ),
        duplicates=int(np.count_nonzero(known)) - len(got),
        reordered=count_reordered(delivered[known]),
    )


def find_newest_in_windows(written: Records, windows: Records) -> npt.NDArray[np.bool_]:
    """Which versions must be delivered. One in no window is wanted, too: its window was lost."""
    group = number_windows(written, windows)
    order = np.lexsort((written["commit"], group, written["key"], written["table"]))
    ordered = written[order]
    same = (
        (ordered["table"][1:] == ordered["table"][:-1])
        & (ordered["key"][1:] == ordered["key"][:-1])
        & (group[order][1:] == group[order][:-1])
    )
    expected = np.ones(len(written), bool)
    expected[order[:-1][same]] = False
    return expected


def number_windows(written: Records, windows: Records) -> Indexes:
    """A number for each version's window: 0 for all of them where a system has no windows; those
    in none of the windows have a negative number each."""
    if not len(windows):
        return np.zeros(len(written), np.int64)
    groups = -1 - np.arange(len(written), dtype=np.int64)
    for table in np.unique(windows["table"]):
        mine = np.flatnonzero(written["table"] == table)
        own = np.unique(windows[windows["table"] == table])
        own = own[np.argsort(own["end"], kind="stable")]
        at = np.minimum(np.searchsorted(own["end"], written["commit"][mine]), len(own) - 1)
        commits = written["commit"][mine]
        inside = (own["start"][at] < commits) & (commits <= own["end"][at])
        groups[mine[inside]] = at[inside]
    return groups


def count_reordered(delivered: Records) -> int:
    """Rows that came after a newer version of their key. Repetitions are not counted here."""
    if len(delivered) < 2:
        return 0
    order = np.lexsort((delivered["at"], delivered["key"], delivered["table"]))
    ordered = delivered[order]
    same = (ordered["table"][1:] == ordered["table"][:-1]) & (
        ordered["key"][1:] == ordered["key"][:-1]
    )
    return int(np.count_nonzero(same & (ordered["commit"][1:] < ordered["commit"][:-1])))
