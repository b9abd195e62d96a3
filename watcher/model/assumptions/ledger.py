"""Every assumption, by its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from watcher.model.assumptions.entry import Assumption, Mode
from watcher.model.assumptions.reads import READS
from watcher.model.assumptions.streams import STREAMS
from watcher.model.assumptions.writes import WRITES

LEDGER: Mapping[str, Assumption] = {each.name: each for each in (*WRITES, *READS, *STREAMS)}


def list_unsafe(names: Iterable[str], modes: Collection[Mode]) -> list[Assumption]:
    """Those of the named assumptions that make one of these modes unsafe where they are wrong.
    A name that another release has stored, and this one does not know, is left out."""
    known = (LEDGER[name] for name in names if name in LEDGER)
    return [each for each in known if each.makes_unsafe(modes)]
