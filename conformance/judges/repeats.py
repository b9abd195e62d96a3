"""Changes that came again: which blow explains it, or why none does; doubled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from conformance.changes import DISTURBING, STARTING, Blow, Line
from conformance.recording import GRACE_MICROS, Finding, Promises, Recording, find
from conformance.truth import Row


@dataclass(frozen=True, slots=True)
class Repeat:
    """A change that came again. ``cause``: the kind of the blow that explains it, or "" and ``why``
    there is none."""

    before: Line
    line: Line
    cause: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Strike:
    """A blow that may make changes come again. ``over``: from then on it has no consequences for
    what is committed; ``ended``: the start of the command that it ended, counted from 1, or 0."""

    blow: Blow
    over: int
    ended: int


@dataclass(frozen=True, slots=True)
class Copies:
    """The lines of a row in their order. ``newest``: for each line the newest commit timestamp of
    the lines before it."""

    lines: Sequence[Line]
    newest: Sequence[int]


def explain_repeats(recording: Recording, promises: Promises) -> list[Repeat]:
    """Every repeat, in the order of their lines, by the four rules of ``docs/conformance.md``."""
    strikes = number_strikes(recording.blows)
    repeats = [
        repeat
        for copies in group_by_row(recording.lines)
        for repeat in explain_row(copies, strikes, promises.stages)
    ]
    return sorted(repeats, key=lambda repeat: repeat.line.number)


def number_strikes(blows: Sequence[Blow]) -> list[Strike]:
    """The blows after which a change may come again, in their order."""
    strikes: list[Strike] = []
    starts = 0
    for blow in sorted(blows, key=lambda blow: blow.begin):
        if blow.kind in STARTING:
            starts += 1
            strikes.append(Strike(blow, blow.end, starts))
        elif blow.kind in DISTURBING:
            strikes.append(Strike(blow, blow.end + GRACE_MICROS, 0))
    return strikes


def group_by_row(lines: Sequence[Line]) -> list[Copies]:
    """The lines of each row."""
    rows: dict[Row, list[Line]] = defaultdict(list)
    for line in lines:
        rows[line.row].append(line)
    return [
        Copies(each, list(accumulate((line.at for line in each), max, initial=-1)))
        for each in rows.values()
    ]


def explain_row(copies: Copies, strikes: Sequence[Strike], stages: int) -> Iterator[Repeat]:
    """The repeats of a row."""
    latest: dict[int, Line] = {}
    used: Counter[tuple[int, int]] = Counter()
    for line, newest in zip(copies.lines, copies.newest, strict=False):
        before = latest.get(line.at)
        latest[line.at] = line
        if before is None:
            continue
        chosen = choose_strikes(before, line, newest, strikes)
        if isinstance(chosen, str):
            yield Repeat(before, line, why=chosen)
            continue
        # The oldest one first: it is the first that later repeats cannot name.
        left = [each for each in chosen if not each.ended or used[line.at, each.ended] < stages]
        if left:
            used[line.at, left[0].ended] += 1
            yield Repeat(before, line, cause=left[0].blow.kind)
        else:
            yield Repeat(before, line, why="more often than the blows explain")


def choose_strikes(
    before: Line, line: Line, newest: int, strikes: Sequence[Strike]
) -> list[Strike] | str:
    """The blows that may be why a line came after the one before it, or why there is none;
    ``newest`` is the newest version of the row that had come."""
    in_time = [each for each in strikes if falls_in_time(each, line)]
    if not in_time:
        return "and no blow between its commit and its arrival explains it"
    if shown_durable(before, line, newest, strikes):
        return "after the command had been restarted and had gone on without it"
    chosen = [each for each in in_time if newest <= each.over]
    return chosen or "after a newer version that was committed after the blow"


def falls_in_time(strike: Strike, line: Line) -> bool:
    """The change was there when the blow fell, and came after it: after a restart, from a later
    start of the command."""
    after = line.start > strike.ended if strike.ended else line.arrived >= strike.blow.begin
    return after and line.at <= strike.over


def shown_durable(before: Line, line: Line, newest: int, strikes: Sequence[Strike]) -> bool:
    """The restart after the line before was followed by a newer version, committed later, and not
    by the change: what the command had kept was not behind it."""
    over = next((each.over for each in strikes if each.ended == before.start), None)
    return over is not None and line.start > before.start and newest > over


def find_doubled(repeats: Sequence[Repeat], promises: Promises) -> Iterator[Finding]:
    """A change comes again only when a blow explains it, and never for who promises exactly one."""
    for repeat in repeats:
        line = repeat.line
        what = f"{line.row} at {line.at} came again"
        if not repeat.cause:
            yield find("doubled", f"{what}, {repeat.why}", repeat.before, line)
        elif promises.exactly_once:
            yield find("doubled", f"{what} after a blow ({repeat.cause})", repeat.before, line)
