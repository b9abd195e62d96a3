"""Options that come with reads and statements and change no answer here: they must make sense."""

from __future__ import annotations

from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.read_write import ReadWriteTransaction
from emulator.errors import invalid_argument
from emulator.services.sessions import Engine
from emulator.sql.hints import check_optimizer_version
from emulator.wire.messages import Message
from emulator.wire.times import to_micros

PRIORITIES = (0, 1, 2, 3)
"""Unspecified, low, medium, high."""
SELECTIONS_MAX = 10
COMMIT_DELAY_MICROS_MAX = 500_000
REPLICA_TYPES = (0, 1, 2)
"""Unspecified, read-write, read-only."""


def check_options(request: Message, engine: Engine) -> None:
    """The priority and the directed read of an ExecuteSql or Read. Raises INVALID_ARGUMENT."""
    check_priority(request)
    if "query_options" in request.DESCRIPTOR.fields_by_name:
        check_optimizer_version(request.query_options.optimizer_version)
    if request.data_boost_enabled and not request.partition_token:
        raise invalid_argument("data_boost_enabled needs a partition_token.")
    hinted = "lock_hint" in request.DESCRIPTOR.fields_by_name and request.lock_hint
    if hinted and not isinstance(engine, ReadWriteTransaction):
        raise invalid_argument("lock_hint can only be used in a read-write transaction.")
    if not request.HasField("directed_read_options"):
        return
    if not isinstance(engine, ReadOnlyTransaction):
        raise invalid_argument("Directed reads can only be performed in a read-only transaction.")
    kind = request.directed_read_options.WhichOneof("replicas")
    if kind is None:
        return
    selections = getattr(request.directed_read_options, kind).replica_selections
    for selection in selections:
        if selection.type_ not in REPLICA_TYPES:
            raise invalid_argument(
                f"Invalid replica type {selection.type_} in {kind}: use READ_WRITE or READ_ONLY."
            )
        if not selection.location and not selection.type_:
            raise invalid_argument(
                f"A replica selection in {kind} must name a location, a replica type, or both."
            )
    count = len(selections)
    if count > SELECTIONS_MAX:
        raise invalid_argument(
            f"The directed_read_options have {count} replica_selections in {kind}: the "
            f"maximum is {SELECTIONS_MAX}."
        )


def check_commit_delay(request: Message) -> None:
    """What a commit may be delayed. Raises INVALID_ARGUMENT."""
    if request.HasField("max_commit_delay"):
        micros = to_micros(request.max_commit_delay, up=True)
        if not 0 <= micros <= COMMIT_DELAY_MICROS_MAX:
            raise invalid_argument("max_commit_delay must be between 0 and 500 milliseconds.")


def check_priority(request: Message) -> None:
    """A priority that there is. Raises INVALID_ARGUMENT."""
    priority = request.request_options.priority
    if priority not in PRIORITIES:
        raise invalid_argument(f"Invalid priority {priority} in the request options.")
