"""``python -m interleavings.run``: explores scenarios, replays a schedule, proves the explorer."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from interleavings.choosers import Prescribed, parse_trace
from interleavings.explore import Explorer, Outcome, Summary
from interleavings.scenarios import SCENARIOS, VARIANTS, variants_of
from spanner_schema.model.schema import Dialect

FAILURES_SHOWN = 3
SCHEDULES, SEED = 300, 1
LABEL_LENGTH = 110
CHUNK = 500
"""So many schedules are a task of a process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 when a schedule failed, or a mutation was not found."""
    options = parser().parse_args(arguments)
    names = list(SCENARIOS) if options.scenario == "all" else options.scenario.split(",")
    known = {**SCENARIOS, **VARIANTS}
    if unknown := [name for name in names if name not in known]:
        print(f"unknown scenario '{unknown[0]}': use one of {', '.join(known)}")
        return 2
    if options.replay is not None:
        return replay(names[0], options.replay, Dialect(options.dialect))
    if options.mutations:
        from interleavings.prove import SCHEDULES_MAX, prove

        return prove(options.schedules or SCHEDULES_MAX, options.seed)
    options.seed = SEED if options.seed is None else options.seed
    options.schedules = options.schedules or SCHEDULES
    summaries = explore_all(names, options)
    show(summaries, Dialect(options.dialect))
    return int(any(summary.failures for summary in summaries))


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="make explore", description=__doc__)
    options.add_argument(
        "--scenario", default="all", help="scenarios or variants with commas between, or all"
    )
    options.add_argument(
        "--schedules", type=int, help="at most, of each scenario (in even parts of its variants)"
    )
    options.add_argument(
        "--seed", type=int, help=f"of the schedules; else {SEED}, or that of each mutation"
    )
    options.add_argument("--mode", choices=["random", "exhaustive"], default="random")
    options.add_argument("--preemptions", type=int, default=2, help="at most, when exhaustive")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument(
        "--results", type=Path, help="a file of what was run; it is not run again with this file"
    )
    options.add_argument("--replay", help="a schedule as a failure shows it; --scenario VARIANT")
    options.add_argument(
        "--dialect", choices=[each.value for each in Dialect], default=Dialect.GOOGLESQL.value
    )
    options.add_argument("--mutations", action="store_true", help="put faults back and find them")
    return options


@dataclass(frozen=True)
class Task:
    """Schedules for a process: of a seed those from ``first`` on, or all with few preemptions."""

    variant: str
    seed: int
    first: int
    schedules: int
    preemptions: int | None = None
    dialect: str = Dialect.GOOGLESQL.value

    def run_in_pool(self) -> Summary:
        """As ``run``. Raises RuntimeError with the text of an error: not each error can be sent to
        another process."""
        try:
            return self.run()
        except Exception:  # noqa: BLE001 (it is raised again)
            raise RuntimeError(f"{self} failed:\n{traceback.format_exc()}") from None

    def run(self) -> Summary:
        """What came of them."""
        with Explorer(VARIANTS[self.variant], Dialect(self.dialect)) as explorer:
            if self.preemptions is None:
                return explorer.summary(explorer.random(self.seed, self.schedules, self.first))
            return explorer.summary(explorer.exhaustive(self.preemptions, self.schedules))


def tasks_of(names: Sequence[str], options: argparse.Namespace) -> list[Task]:
    """Everything that is to be run."""
    tasks = []
    for name in names:
        for variant, schedules in shares(name, options.schedules).items():
            if options.mode == "exhaustive":
                preemptions, count = options.preemptions, options.schedules
                tasks.append(Task(variant, 0, 0, count, preemptions, options.dialect))
                continue
            for first in range(0, schedules, CHUNK):
                count = min(CHUNK, schedules - first)
                tasks.append(Task(variant, options.seed, first, count, None, options.dialect))
    return tasks


def shares(name: str, schedules: int) -> dict[str, int]:
    """How many of a scenario's schedules each variant has."""
    variants = variants_of(name)
    share, rest = divmod(schedules, len(variants))
    return {each.name: share + int(place < rest) for place, each in enumerate(variants)}


def explore_all(names: Sequence[str], options: argparse.Namespace) -> list[Summary]:
    """What came of each variant, over all processes."""
    tasks = tasks_of(names, options)
    totals = {task.variant: Summary(task.variant) for task in tasks}
    known = read_results(options.results)
    for task in tasks:
        if task in known:
            totals[task.variant].add(known[task])
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context) as pool:
        running = {pool.submit(task.run_in_pool): task for task in tasks if task not in known}
        for done in as_completed(running):
            part = done.result()
            totals[part.variant].add(part)
            if options.results is not None:
                write_result(options.results, running[done], part)
            print(f"{part.variant}: {part.schedules} schedules", file=sys.stderr, flush=True)
    return list(totals.values())


def read_results(path: Path | None) -> dict[Task, Summary]:
    """What earlier runs have written to a file."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {Task(**line["task"]): summary_of(line["summary"]) for line in lines}


def summary_of(values: dict[str, Any]) -> Summary:
    """A summary as it was written."""
    failures = [Outcome(**each) for each in values.pop("failures")]
    return Summary(**values, failures=failures)


def write_result(path: Path, task: Task, summary: Summary) -> None:
    """Adds a line to the file."""
    with path.open("a") as file:
        file.write(json.dumps({"task": asdict(task), "summary": asdict(summary)}) + "\n")


def show(summaries: Sequence[Summary], dialect: Dialect = Dialect.GOOGLESQL) -> None:
    """The table, and how to replay what failed. Milliseconds are those of a process that may have
    shared its core."""
    print(f"{'variant':<24}{'schedules':>10}{'steps':>8}{'failures':>10}{'seconds':>9}{'ms':>7}")
    for each in summaries:
        count = max(each.schedules, 1)
        print(
            f"{each.variant:<24}{each.schedules:>10}{each.steps / count:>8.0f}"
            f"{len(each.failures):>10}{each.seconds:>9.0f}{each.seconds / count * 1000:>7.0f}"
        )
    for each in summaries:
        for outcome in each.failures[:FAILURES_SHOWN]:
            print()
            print(failure_text(each.variant, outcome, dialect))


def failure_text(variant: str, outcome: Outcome, dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """A schedule that failed, and how to run it again."""
    problems = "\n".join(f"  {problem}" for problem in outcome.problems)
    other = f" --dialect {dialect.value}" if dialect is not Dialect.GOOGLESQL else ""
    arguments = f"--scenario {variant}{other} --replay '{outcome.text}'"
    command = f'make explore EXPLORE_ARGS="{arguments}"'
    return f"{variant}, {outcome.name}:\n{problems}\n  {command}"


def replay(name: str, text: str, dialect: Dialect) -> int:
    """Runs one schedule again and shows its steps."""
    with Explorer(VARIANTS[name], dialect) as explorer:
        outcome = explorer.run(Prescribed(parse_trace(text)))
    for token, label in zip(outcome.trace, outcome.labels, strict=True):
        print(f"{token:<6}{label[:LABEL_LENGTH]}")
    replayed = replace(outcome, name="replayed")
    print(failure_text(name, replayed, dialect) if outcome.problems else "no failure")
    return int(bool(outcome.problems))


if __name__ == "__main__":
    sys.exit(main())
