"""What the options of Spark and those of a watcher share: fields, and the words of refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spanner_schema.model.suggestions import suggest_name
from watcher.consumers.positions.own_names import check_positions_table
from watcher.consumers.positions.tables import KEY_CHARACTERS_MAX
from watcher.model.assumptions.ledger import LEDGER
from watcher.model.errors import ConfigurationError
from watcher.model.window import BEGINNING
from watcher.settings.secret_values import hide_credentials
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.read_options import DirectedRead, Priority, ReadOptions
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.timestamps import to_micros
from watcher.tables.masks import MaskKey

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LATEST, EARLIEST = "latest", "earliest"
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\Z")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]i?)?B?\Z")
DAYS_MAX = 36_500
SECONDS_MAX = DAYS_MAX * 86_400.0
"""What a clock can count to, whatever the duration is added to."""
SIZE_UNITS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
BINARY_UNITS = {"ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
UNITS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def duration_seconds(text: str) -> float:
    """'500ms', '1s', '5m', '2h', '1d' or plain seconds. Raises ConfigurationError."""
    match = DURATION.match(text.strip())
    if match is None:
        raise ConfigurationError(f"invalid duration '{text}': use 500ms, 1s, 5m, 2h or 1d")
    seconds = float(match.group(1)) * UNITS[match.group(2)]
    if seconds > SECONDS_MAX:
        raise ConfigurationError(f"invalid duration '{text}': use at most {DAYS_MAX}d")
    return seconds


def size_bytes(text: str) -> int:
    """'500kB', '64MiB', '1GB' or plain bytes. Raises ConfigurationError."""
    match = SIZE.match(text.strip().replace("K", "k"))
    if match is None:
        raise ConfigurationError(f"invalid size '{text}': use 500kB, 64MiB, 1GiB or plain bytes")
    units = SIZE_UNITS | BINARY_UNITS
    return round(float(match.group(1)) * units.get(match.group(2) or "", 1))


def resolve_start(text: str) -> int | None:
    """A start as microseconds since 1970; None is now. Raises ConfigurationError."""
    if text == LATEST:
        return None
    if text == EARLIEST:
        return BEGINNING
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(
            f"invalid start '{text}': use {LATEST}, {EARLIEST} or a timestamp such as"
            " 2026-01-31T12:00:00Z"
        ) from error
    micros = to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if micros < BEGINNING:
        raise ConfigurationError(f"invalid start '{text}': use {EARLIEST}, or a time from 1970 on")
    return micros


def _convert_duration(value: object) -> object:
    """As ``duration_seconds``; numbers are seconds. Raises ValueError, for pydantic."""
    try:
        return duration_seconds(value) if isinstance(value, str) else value
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def _convert_size(value: object) -> object:
    """As ``size_bytes``; numbers are bytes. Raises ValueError, for pydantic."""
    try:
        return size_bytes(value) if isinstance(value, str) else value
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


def check_by(parse: Callable[[str], object]) -> AfterValidator:
    """Keeps a text that ``parse`` takes; ConfigurationError becomes ValueError, for pydantic."""

    def check(text: str) -> str:
        try:
            parse(text)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error
        return text

    return AfterValidator(check)


def resolve_end(text: str) -> int | None:
    """As ``resolve_start``, for an end."""
    if text == EARLIEST:
        raise ConfigurationError(f"invalid end '{text}': use {LATEST} or a timestamp")
    return resolve_start(text)


Text = Annotated[str, Field(min_length=1)]
PositionsTable = Annotated[Text, check_by(check_positions_table)]
"""The table of positions: TABLE or SCHEMA.TABLE."""
ConsumerName = Annotated[str, Field(min_length=1, max_length=KEY_CHARACTERS_MAX)]
Duration = Annotated[
    float, BeforeValidator(_convert_duration), Field(ge=0, le=SECONDS_MAX, allow_inf_nan=False)
]
"""Seconds; as text also 500ms, 1s, 5m, 2h."""
Size = Annotated[int, BeforeValidator(_convert_size), Field(ge=0)]
"""Bytes; as text also 500kB, 64MiB, 1GiB."""
Start = Annotated[Text, check_by(resolve_start)]
"""``latest``, ``earliest`` or an RFC 3339 timestamp; ``resolve_start`` gives microseconds."""
End = Annotated[Text, check_by(resolve_end)]
"""``latest`` or an RFC 3339 timestamp."""


UNKNOWN_OPTION = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
WHOLE_NUMBER, NUMBER = "is not a whole number", "is not a number"
BOOLEAN, TEXT = "is neither true nor false", "is not a text"
LIST, TABLE = "is not a list", "is not a table of names and values"
PROBLEMS = {
    "int_parsing": WHOLE_NUMBER,
    "int_parsing_size": WHOLE_NUMBER,
    "int_from_float": WHOLE_NUMBER,
    "int_type": WHOLE_NUMBER,
    "float_parsing": NUMBER,
    "float_type": NUMBER,
    "finite_number": NUMBER,
    "bool_parsing": BOOLEAN,
    "bool_type": BOOLEAN,
    "string_type": TEXT,
    "path_type": "is no path of a file",
    "string_too_short": "is too short: at least {min_length} character is needed",
    "string_too_long": "is too long: at most {max_length} characters are allowed",
    "too_short": "is too short: at least {min_length} is needed",
    "too_long": "is too long: at most {max_length} are allowed",
    "enum": "is not one of {expected}",
    "literal_error": "is not one of {expected}",
    "greater_than": "is too small: use more than {gt}",
    "greater_than_equal": "is too small: use {ge} or more",
    "less_than": "is too large: use less than {lt}",
    "less_than_equal": "is too large: use {le} or less",
    "list_type": LIST,
    "tuple_type": LIST,
    "set_type": LIST,
    "dict_type": TABLE,
    "mapping_type": TABLE,
    "model_type": TABLE,
    "model_attributes_type": TABLE,
    "dataclass_type": TABLE,
}
"""What is wrong with a value, by pydantic's name for it."""


class Section(BaseModel):
    """A section of the file. It refuses unknown options."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _split_probes(value: object) -> object:
    """Names in one text, with commas between them. Raises ValueError for one that is no
    assumption, for pydantic."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return value
    names = tuple(name.strip() if isinstance(name, str) else name for name in names)
    unknown = [str(name) for name in names if name not in LEDGER]
    if unknown:
        suggestion = suggest_name(unknown[0], LEDGER, "assumptions")
        raise ValueError(f"no assumption is called '{unknown[0]}'; {suggestion}")
    return names


AcceptedProbes = Annotated[tuple[str, ...], BeforeValidator(_split_probes)]


class SharedSettings(BaseModel):
    """The fields that both spellings share. The text below a field is its line in the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database: Text
    """The database: ``spanner://projects/P/instances/I/databases/D``; what may follow is in
    docs/networks.md."""
    consumer: ConsumerName | None = None
    """The name under which the position is saved; without it, nothing is saved and clearing does
    not wait."""
    nanoseconds: Nanoseconds = Nanoseconds.TRUNCATE
    """What becomes of a TIMESTAMP finer than microseconds that is polled or backfilled:
    ``truncate``, ``refuse`` (an error), or ``string`` (every TIMESTAMP as text, with all digits).
    Keys and change streams keep all digits."""
    priority: Priority | None = None
    """At which priority Spanner serves the reads of captures; without it, Spanner's default, high,
    and low for whole tables."""
    directed_read: DirectedRead | None = None
    """Which replicas serve the reads of captures."""
    mask_key: MaskKey | None = None
    """Where the key of the hashes is by which columns are masked: a file or an environment
    variable. It has 16 characters at least."""
    accept_failed_probes: AcceptedProbes = ()
    """Names of what docs/assumptions.md lists that may be wrong: run although the last
    ``spanner-watcher check --probe`` of the database found them wrong, and lose or double rows."""

    @property
    def read_options(self) -> ReadOptions:
        """The options of every read of a capture."""
        return ReadOptions(self.priority, self.directed_read)


def check_directed_reads(settings: SharedSettings, address: DatabaseAddress) -> None:
    """Raises ConfigurationError where an address and an option direct reads, of which one would
    count."""
    if settings.directed_read is not None and address.directed_read is not None:
        raise ConfigurationError(
            "the address of the database has a directed_read, and so have the options: use one of"
            " them"
        )


def unknown_option(name: str, known: Iterable[str]) -> ConfigurationError:
    """The refusal of an unknown option; suggests the nearest known one."""
    return ConfigurationError(
        f"unknown option '{name}'; {suggest_name(name, known, 'known options')}"
    )


def describe_validation_error(error: ValidationError) -> str:
    """What is wrong with which options, as one sentence in words of our own."""
    return "; ".join(describe_problem(each) for each in error.errors())


def describe_problem(found: ErrorDetails) -> str:
    """One thing that pydantic found."""
    kind, context = found["type"], found.get("ctx", {})
    # A value of a list is shown itself: its place says nothing more.
    path = found["loc"][:-1] if isinstance(found["loc"][-1], int) else found["loc"]
    option = ".".join(str(part) for part in path)
    if kind == "missing":
        return f"option '{option}' is missing"
    if kind in UNKNOWN_OPTION:
        return f"unknown option '{option}'"
    if kind == "value_error":
        return f"option '{option}': {context['error']}"
    problem = PROBLEMS.get(kind, "is not valid: the reference says what it takes")
    return f"option '{option}': {show_input(found['input'])} {problem.format_map(context)}"


def show_input(value: object) -> str:
    """A value that is wrong. One that has others inside is not shown: some may be secret, and one
    that was written in the wrong place is still a secret."""
    if isinstance(value, str):
        return hide_credentials(repr(value))
    return repr(value) if isinstance(value, int | float | None) else "its value"
