"""A change in the formats of others: each envelope by its name, with its options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import ValidationError

from watcher.change import Change
from watcher.envelopes.change_stream import ChangeStream
from watcher.envelopes.datastream import Datastream, DatastreamAvro
from watcher.envelopes.debezium import Debezium
from watcher.envelopes.message import Envelope, Known, Message
from watcher.envelopes.plain import Plain
from watcher.envelopes.ydb import Ydb
from watcher.envelopes.ydb_debezium import YdbDebezium
from watcher.errors import ConfigurationError

__all__ = ["ENVELOPES", "AnyEnvelope", "Envelope", "Known", "Message", "encode", "envelope"]

AnyEnvelope = Plain | Datastream | DatastreamAvro | Debezium | Ydb | YdbDebezium | ChangeStream
ENVELOPES: dict[str, type[AnyEnvelope]] = {
    "plain": Plain,
    "datastream": Datastream,
    "datastream-avro": DatastreamAvro,
    "debezium": Debezium,
    "ydb": Ydb,
    "ydb-debezium": YdbDebezium,
    "change-stream": ChangeStream,
}


def envelope(
    name: str, options: Mapping[str, object] | None = None, stream: str | None = None
) -> AnyEnvelope:
    """The envelope of a name, with its options; ``stream`` is the change stream that is read, for
    formats that name it. Raises ConfigurationError that names what is wrong, and the nearest right
    name."""
    if name not in ENVELOPES:
        raise ConfigurationError(f"there is no envelope '{name}'{nearest(name, ENVELOPES)}")
    model = ENVELOPES[name]
    given = dict(options or {})
    if stream is not None and "stream" in model.model_fields:
        given.setdefault("stream", stream)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        option = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = nearest(option, model.model_fields)
            raise ConfigurationError(
                f"envelope '{name}' has no option '{option}'{known}"
            ) from error
        message = first["msg"].removeprefix("Value error, ")
        where = f"option '{option}' of envelope '{name}'" if option else f"envelope '{name}'"
        raise ConfigurationError(f"{where}: {message}") from error


def nearest(given: str, names: Iterable[str]) -> str:
    """For messages: what was probably meant, or all that there is."""
    known = list(names)
    close = get_close_matches(given, known, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there are: {', '.join(known)}" if known else "; it has none"


def encode(
    changes: Iterable[Change], chosen: Envelope
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values of the messages of changes, in their order; a value of None is a tombstone.

    Raises EnvelopeError when a change lacks what the format needs.
    """
    for change in changes:
        for message in chosen.encode(change):
            yield message.key, message.value
