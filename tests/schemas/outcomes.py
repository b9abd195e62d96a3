"""What came of a schema: plain values, and the table at the end."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

PROBLEMS_MAX = 40
"""Kept of one schema: a fault in a type is one in each of its rows."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What was wrong, at which stage."""

    stage: str
    text: str


@dataclass
class SchemaOutcome:
    """A schema's way. ``refused`` maps tables (and statements) to the product's reason."""

    name: str
    dialect: str
    problems: list[Problem] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    """Statements that the embedded server refuses by name."""
    not_written: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether nothing was wrong."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """In a word: a schema of which nothing could be watched was refused."""
        if self.problems:
            return f"{len(self.problems)} problems"
        return "holds" if self.counts["tables watched"] else "refused"

    def add(self, stage: str, texts: Sequence[str]) -> None:
        """Adds problems of a stage."""
        for text in texts[: PROBLEMS_MAX - len(self.problems)]:
            self.problems.append(Problem(stage, text[:2000]))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What a stage raises is a problem: the schema goes on, as a user would try to."""
        start = perf_counter()
        try:
            yield
        except Exception:  # noqa: BLE001 (whatever the product raises is what is looked for)
            self.add(name, [traceback.format_exc()[-2000:]])
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def to_json(self) -> dict[str, Any]:
        """For a file of results."""
        return asdict(replace(self, counts=Counter())) | {
            "counts": dict(self.counts),
            "verdict": self.verdict,
        }


def format_table(outcomes: Sequence[SchemaOutcome]) -> str:
    """How many hold, what was done, and which stages had problems."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    left: Counter[str] = Counter()
    stages: Counter[str] = Counter()
    for each in outcomes:
        counts.update(each.counts)
        seconds.update(each.seconds)
        left["statements refused by the embedded server"] += len(each.unsupported)
        left["tables refused"] += len(each.refused)
        left["tables without rows"] += len(each.not_written)
        left["columns that are never delivered"] += len(each.left_out)
        stages.update({problem.stage for problem in each.problems})
    lines = [f"{'stage':<12} {'schemas with problems':>22} {'seconds':>9}"]
    lines += [f"{name:<12} {stages[name]:>22} {seconds[name]:>9.1f}" for name in seconds]
    lines += [f"{name:<12} {count:>22}" for name, count in stages.items() if name not in seconds]
    lines.append(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    lines.append(", ".join(f"{count:,} {name}" for name, count in left.items()))
    wrong = sum(not each.holds for each in outcomes)
    refused = sum(each.verdict == "refused" for each in outcomes)
    lines.append(
        f"of {len(outcomes)} schemas {len(outcomes) - wrong - refused} hold, {refused} are refused"
        f" before anything is changed, {wrong} have problems"
    )
    return "\n".join(lines)
