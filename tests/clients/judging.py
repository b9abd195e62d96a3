"""Judges a suite: what failed has to be known, and what is known has to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clients.outcomes import Outcome, Verdict

DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a suite. ``known`` failed with a reason that is listed, ``problems`` are
    sentences: any of them makes the run fail."""

    suite: str
    passed: int
    known: int
    skipped: int
    problems: tuple[str, ...]

    @property
    def failed(self) -> int:
        """The number of problems."""
        return len(self.problems)


def judge(suite: str, outcomes: Sequence[Outcome], exceptions: Mapping[str, str]) -> Judgement:
    """Compares the outcomes with the exceptions, reasons by case. A run without a case that passed
    is a problem: a suite that cannot start would otherwise be one without a fault."""
    failed = {each.case: each for each in outcomes if each.verdict is Verdict.FAILED}
    passed = {each.case for each in outcomes if each.verdict is Verdict.PASSED}
    problems = [describe(each) for case, each in failed.items() if case not in exceptions]
    for case in exceptions:
        if case in passed:
            problems.append(f"{case}: passes, take it off the list of exceptions")
        elif case not in failed:
            problems.append(f"{case}: is an exception, and no case that was run")
    if not passed:
        problems.append("no case has passed: read the log of the suite")
    skipped = sum(each.verdict is Verdict.SKIPPED for each in outcomes)
    known = sum(case in exceptions for case in failed)
    return Judgement(suite, len(passed), known, skipped, tuple(problems))


def describe(outcome: Outcome) -> str:
    """A failure in one line."""
    detail = " ".join(outcome.detail.split())[:DETAIL_CHARACTERS]
    return f"{outcome.case}: failed: {detail}"


def list_exceptions(reasons: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Reasons by case, of cases by reason."""
    return {case: reason for reason, cases in reasons.items() for case in cases}


def format_table(judgements: Sequence[Judgement]) -> str:
    """A line a suite, and below it its problems."""
    lines = [f"{'suite':24}{'passed':>8}{'known':>8}{'skipped':>9}{'problems':>10}"]
    for each in judgements:
        lines.append(
            f"{each.suite:24}{each.passed:8}{each.known:8}{each.skipped:9}{each.failed:10}"
        )
        lines += [f"    {problem}" for problem in each.problems]
    return "\n".join(lines)
