"""What became of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from golden import out_of_scope

OUT_OF_SCOPE = "out of scope"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``case`` is the part, the file, and the line or the name. ``verdict`` is a word for the
    table, ``is_fault`` whether the case must not end so, ``detail`` what was sent and came back."""

    case: str
    verdict: str
    is_fault: bool
    detail: str


def mark_out_of_scope(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes, those of cases out of scope as such."""
    for each in outcomes:
        reason = out_of_scope.CASES.get(each.case) if each.is_fault else None
        yield Outcome(each.case, OUT_OF_SCOPE, False, reason) if reason else each


def format_table(part: str, outcomes: list[Outcome]) -> str:
    """One line a verdict, the most frequent first."""
    counted = Counter((each.verdict, each.is_fault) for each in outcomes)
    lines = [f"{part}: {len(outcomes)} cases"]
    for (verdict, is_fault), count in counted.most_common():
        lines.append(f"  {count:>6}  {verdict}{'  <- a fault' if is_fault else ''}")
    return "\n".join(lines)
