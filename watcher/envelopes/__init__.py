"""A change in the formats of others: each envelope by its name, with its options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pkgutil import resolve_name

from pydantic import ValidationError

from spanner_schema.model.suggestions import suggest_name
from watcher.envelopes.message import Envelope, EnvelopeOptions, Known, Message
from watcher.model.change import Change
from watcher.model.errors import ConfigurationError
from watcher.model.outputs import MESSAGE_FORMATS

__all__ = [
    "ENVELOPES",
    "Envelope",
    "EnvelopeOptions",
    "Known",
    "Message",
    "encode",
    "make_envelope",
]

ENVELOPES: dict[str, type[EnvelopeOptions]] = {
    name: resolve_name(f"{__name__}.{entry.options}") for name, entry in MESSAGE_FORMATS.items()
}


def make_envelope(
    name: str, options: Mapping[str, object] | None = None, stream: str | None = None
) -> EnvelopeOptions:
    """The envelope of a name, with its options; ``stream`` is the change stream that is read, for
    formats that name it. Raises ConfigurationError that says what is wrong."""
    if name not in ENVELOPES:
        raise ConfigurationError(
            f"unknown envelope '{name}'; {suggest_name(name, ENVELOPES, 'envelopes')}"
        )
    model = ENVELOPES[name]
    values = dict(options or {})
    if stream is not None and "stream" in model.model_fields:
        values.setdefault("stream", stream)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise describe_refusal(name, error) from error


def describe_refusal(name: str, error: ValidationError) -> ConfigurationError:
    """The first of the errors that pydantic found in the options of an envelope."""
    first = error.errors()[0]
    option = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        hint = suggest_name(option, ENVELOPES[name].model_fields, "its options")
        return ConfigurationError(f"unknown option '{option}' of envelope '{name}'; {hint}")
    where = f"option '{option}' of envelope '{name}'" if option else f"envelope '{name}'"
    return ConfigurationError(f"{where}: {first['msg'].removeprefix('Value error, ')}")


def encode(
    changes: Iterable[Change], chosen: Envelope
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values of the messages of changes, in their order; a value of None is a tombstone.

    Raises EnvelopeError when a change lacks what the format needs.
    """
    for change in changes:
        for message in chosen.encode(change):
            yield message.key, message.value
