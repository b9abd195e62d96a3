"""The value that describes a variant of a scenario, and bodies that many variants share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from interleavings.actors import LONG_SECONDS, Run
from interleavings.judges import Expectation

ROWS = "CREATE TABLE `Rows` (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"

Body = Callable[[Run], object]


def do_nothing(_run: Run) -> None:
    """Does nothing."""


@dataclass(frozen=True)
class Variant:
    """``prelude`` runs before the actors, ``finale`` after them, neither is explored. An actor in
    ``crashes`` may crash so often, at any RPC. ``allowed`` are errors that end an actor lawfully.
    ``quiet``: queries whose answer no actor changes."""

    name: str
    actors: Mapping[str, Body]
    expectations: tuple[Expectation, ...]
    statements: tuple[str, ...] = (ROWS,)
    watchable: tuple[str, ...] = ("Rows",)
    prelude: Body = do_nothing
    finale: Body = do_nothing
    crashes: Mapping[str, int] = field(default_factory=dict)
    allowed: tuple[type, ...] = ()
    schema_changes: bool = False
    quiet: tuple[str, ...] = ("INFORMATION_SCHEMA",)


def deliver_and_clear(run: Run, **options: object) -> None:
    """Consumer A, or another ``consumer``: a whole watcher that polls and clears."""
    options = {
        "tables": ["*"],
        "start": "earliest",
        "lease": LONG_SECONDS,
        "interval": 0.001,
        "clearing": {"every": 0.001},
    } | options
    run.watcher(str(options.pop("consumer", "a")), **options).run()


def begin_with_rows(run: Run) -> None:
    """A is registered, and three rows are there that it has not delivered."""
    run.register("a", ["Rows"])
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


def write_rows(run: Run) -> None:
    """Updates and inserts."""
    run.write(("Rows", 1, "1.1"))
    run.write(("Rows", 2, "2.1"), ("Rows", 4, "4.0"))
    run.write(("Rows", 1, "1.2"))


def watch_once(*consumers: str, **options: object) -> Body:
    """Consumers that run once, one after another."""
    options = {"tables": ["*"], "start": "earliest"} | options

    def body(run: Run) -> None:
        for consumer in consumers:
            run.watcher(consumer, **options).run_once()

    return body


def catch_up(*consumers: str, **options: object) -> Body:
    """In the end every consumer delivers what is left; one that has nothing left is not started."""

    def finale(run: Run) -> None:
        watch_once(*filter(run.record.owes, consumers), **options)(run)

    return finale
