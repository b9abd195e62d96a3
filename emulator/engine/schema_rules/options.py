"""The options of a database."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.errors import (
    SpannerError,
    failed_precondition,
    invalid_argument,
    unimplemented,
)
from emulator.sql.hints import check_optimizer_version, check_statistics_package
from emulator.values.zones import read_zone
from spanner_schema.model import steps
from spanner_schema.model.schema import Schema

DURATION_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
DEFAULT_TIME_ZONE = "America/Los_Angeles"
RETENTION_SECONDS_MIN = 3_600
RETENTION_SECONDS_MAX = 7 * 86_400
QUOTES = "'\""
DATABASE_OPTIONS = frozenset(
    {
        *("default_leader", "witness_location", "read_lease_regions", "columnar_policy"),
        *("optimizer_version", "optimizer_statistics_package"),
        *("version_retention_period", "default_sequence_kind", "default_time_zone"),
        *("use_unenforced_foreign_key_for_query_optimization", "per_placement_routing_metadata"),
        "enable_key_visualizer",
    }
)


def refuse_options(step: steps.Step, schema: Schema) -> None:
    """Options of a database that Spanner does not know, or that would change answers and do not
    here."""
    for name, value in step.options if isinstance(step, steps.AlterDatabase) else ():
        if name == "auto_managed_root_placement_table_name":
            raise unimplemented(f"The option {name}, and remote indexes,")
        if name == "schema_drop_protection_inactivity_period":
            raise unimplemented(f"The option {name}, and drop protection of schema objects,")
        if name not in DATABASE_OPTIONS:
            raise invalid_argument(f"Option: {name} is unknown.")
        if name == "optimizer_version":
            check_optimizer_version((value or "").strip("'\""))
        if name == "enable_key_visualizer" and value not in {"true", "false", None}:
            raise invalid_argument(f"Unexpected value for option: {name}. It is true or false.")
        if name == "default_sequence_kind":
            if value is None and name in schema.options:
                raise failed_precondition(
                    "The default_sequence_kind option may not be unset once set."
                )
            if value is not None and value.strip(QUOTES) != "bit_reversed_positive":
                refuse_sequence_kind(value)
        if name == "default_time_zone":
            refuse_time_zone(value, schema)
        if name == "optimizer_statistics_package":
            check_statistics_package((value or "").strip(QUOTES), schema.statistics)


def refuse_sequence_kind(value: str) -> None:
    """There is one kind of sequences."""
    if not value.startswith(("'", '"')):
        raise invalid_argument(
            "Unexpected value for option: default_sequence_kind. Supported option values are"
            " strings and NULL."
        )
    raise failed_precondition(f"Invalid Sequence Kind: {value.strip(QUOTES)}.")


def refuse_time_zone(value: str | None, schema: Schema) -> None:
    """A database without tables may take another zone, which is not supported here."""
    if value is not None and not value.startswith(("'", '"')):
        raise invalid_argument(
            "Unexpected value for option: default_time_zone. Supported option values are strings"
            " and NULL."
        )
    if schema.tables:
        raise failed_precondition(
            "The 'default_time_zone' database option cannot be changed on a database with user"
            " defined tables."
        )
    zone = DEFAULT_TIME_ZONE if value is None else value.strip(QUOTES)
    try:
        read_zone(zone)
    except ValueError as error:
        raise failed_precondition(
            f"Database has invalid default_time_zone option.  Invalid time zone name: {zone}"
        ) from error
    if zone != DEFAULT_TIME_ZONE:
        raise unimplemented(f"A default_time_zone other than {DEFAULT_TIME_ZONE}")


def retention_seconds(options: Mapping[str, str]) -> int:
    """``version_retention_period``: one hour to seven days, one hour by default."""
    text = options.get("version_retention_period", "1h").strip("'\"")
    number, unit = text[:-1], text[-1:]
    if not number.isdigit() or unit not in DURATION_SECONDS:
        raise invalid_retention(text)
    seconds = int(number) * DURATION_SECONDS[unit]
    if not RETENTION_SECONDS_MIN <= seconds <= RETENTION_SECONDS_MAX:
        raise invalid_retention(text)
    return seconds


def invalid_retention(text: str) -> SpannerError:
    """A retention period that Spanner does not offer."""
    return invalid_argument(
        f"Invalid version_retention_period '{text}': it must be between 1h and 7d, such as '36h'."
    )
