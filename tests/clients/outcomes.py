"""What became of the cases of a suite, read from what its runner writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree


class Verdict(StrEnum):
    """What a runner says of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case and what became of it; ``detail`` is why it failed or was skipped."""

    case: str
    verdict: Verdict
    detail: str = ""


NO_XML = re.compile(r"[^\t\n\r -\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
GO_VERDICTS = {"pass": Verdict.PASSED, "fail": Verdict.FAILED, "skip": Verdict.SKIPPED}
JUNIT_VERDICTS = {
    "failure": Verdict.FAILED,
    "error": Verdict.FAILED,
    "skipped": Verdict.SKIPPED,
}


def read_junit(path: Path) -> list[Outcome]:
    """The cases of a file as pytest, Surefire and JUnit's console write it. A case whose teardown
    fails is there twice: it has failed."""
    outcomes: dict[str, Outcome] = {}
    # Mocha writes names with characters that no XML has.
    text = NO_XML.sub("\N{REPLACEMENT CHARACTER}", path.read_text())
    for element in ElementTree.fromstring(text).iter("testcase"):
        outcome = read_testcase(element)
        before = outcomes.get(outcome.case)
        if before is None or before.verdict is not Verdict.FAILED:
            outcomes[outcome.case] = outcome
    return list(outcomes.values())


def read_testcase(element: ElementTree.Element) -> Outcome:
    """One case; its name is that of its class and its own."""
    name = element.get("name", "")
    case = ".".join(filter(None, (element.get("classname"), name)))
    for child in element:
        if child.tag in JUNIT_VERDICTS:
            detail = child.get("message") or child.text or ""
            return Outcome(case, JUNIT_VERDICTS[child.tag], detail.strip())
    return Outcome(case, Verdict.PASSED)


def read_go(lines: Iterable[str]) -> list[Outcome]:
    """The cases of ``go test -json``: those without cases of their own, and parents that fail or
    are skipped by themselves. A test that never ended (a panic, a timeout) has failed."""
    said: dict[str, list[str]] = {}
    verdicts: dict[str, Verdict | None] = {}
    for event in read_events(lines):
        case = event.get("Test")
        if case is None:
            continue
        verdicts.setdefault(case, None)
        action = event["Action"]
        if action == "output":
            said.setdefault(case, []).append(event.get("Output", ""))
        elif action in GO_VERDICTS:
            verdicts[case] = GO_VERDICTS[action]
    return list(count_leaves(verdicts, said))


def read_events(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """The events among the lines; a build that fails writes others, too."""
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)


def count_leaves(
    verdicts: dict[str, Verdict | None], said: dict[str, list[str]]
) -> Iterator[Outcome]:
    """A parent counts when it fails although none of its cases does."""
    parents = {case.rpartition("/")[0] for case in verdicts if "/" in case}
    failed = {case for case, verdict in verdicts.items() if verdict in (Verdict.FAILED, None)}
    for case, verdict in verdicts.items():
        below = any(other.startswith(f"{case}/") for other in failed)
        if case in parents and (below or verdict is Verdict.PASSED):
            continue
        detail = "" if verdict is Verdict.PASSED else shorten(said.get(case, ()))
        yield Outcome(case, verdict or Verdict.FAILED, detail)


def shorten(output: Iterable[str]) -> str:
    """What a test said, without the lines of its runner."""
    lines = [line.strip() for line in output]
    return "\n".join(line for line in lines if line and not line.startswith(("===", "---")))
