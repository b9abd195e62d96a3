"""The pages of settings: a watcher's file, the file of ``ddl``, the options of the Spark source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import get_origin

from pydantic.alias_generators import to_camel

from reference_pages.fields import FieldText, iterate_hints, list_fields
from reference_pages.markdown import code, format_prose, make_page, make_table
from spanner_schema.model.options import WatchFile, WatchOptions
from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import WatchConfig

TITLES = ("name", "type", "default", "meaning")
TYPES = [
    *make_table(
        ("type", "is written"),
        [
            ("duration", '`"500ms"`, `"1s"`, `"5m"`, `"2h"`, `"1d"`, or plain seconds'),
            ("start", "`latest`, `earliest`, or a timestamp such as `2026-01-31T12:00:00Z`"),
            ("end", "`latest`, or such a timestamp"),
            ("list of", '`["one", "two"]`'),
            ("table", "a section, or `{ name = value }`"),
        ],
    )
]


def describe_class(owner: type) -> list[str]:
    """The docstring of a class, as lines."""
    text = inspect.getdoc(owner) or ""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    shown = [
        each.replace(" The text below a field is its line in the reference.", "")
        for each in paragraphs
        if not each.startswith("Raises")
    ]
    return [line for each in shown for line in (format_prose(each), "")]


def make_rows(
    fields: list[FieldText], rename: Callable[[str], str] = str
) -> Iterator[tuple[str, ...]]:
    """Rows of ``TITLES``."""
    for each in fields:
        yield code(rename(each.name)), each.kind, each.default, each.meaning


def describe_section(owner: type, path: str = "") -> Iterator[str]:
    """The fields of a section and, below them, the sections in it."""
    fields = list(list_fields(owner))
    hints = {name: hint for name, hint, _ in iterate_hints(owner)}
    if path:
        yield from (f"## `[{path}]`", "")
        yield from describe_class(owner)
    yield from make_table(
        TITLES,
        make_rows(
            [
                each
                for each in fields
                if each.section is None or get_origin(hints[each.name]) is tuple
            ]
        ),
    )
    seen: set[type] = set()
    for each in fields:
        if each.section is None or each.section in seen:
            continue
        seen.add(each.section)
        inner = f"{path}.{each.name}" if path else each.name
        if get_origin(hints[each.name]) is tuple:
            yield from describe_entries(each.section, inner)
        else:
            many = get_origin(hints[each.name]) in (Mapping, dict)
            yield from describe_section(each.section, f"{inner}.NAME" if many else inner)


def describe_entries(owner: type, path: str) -> Iterator[str]:
    """The fields of each entry of a list."""
    yield from (f"## Entries of `{path}`", "")
    yield from describe_class(owner)
    yield from make_table(TITLES, make_rows(list(list_fields(owner))))


def make_configuration_page() -> str:
    """docs/reference/configuration.md. Raises MissingDescriptionError."""
    return make_page(
        "Configuration of a watcher",
        "The file of `spanner-watcher watch --config`, `check --config`, `page --config` and"
        " `replicate --config`, and the keyword arguments of `watcher.Watcher`."
        " An example with comments is in [Watching without Spark](../watch.md).",
        "",
        *TYPES,
        *describe_section(WatchConfig),
    )


def make_ddl_page() -> str:
    """docs/reference/ddl-configuration.md. Raises MissingDescriptionError."""
    return make_page(
        "Configuration of `ddl`",
        "The file of `spanner-watcher ddl ... --config`. An example is in"
        " [Preparing a database](../ddl.md#what-to-watch-and-how).",
        "",
        *describe_section(WatchFile),
        "## `[defaults]` and `[table.NAME]`",
        "",
        *describe_class(WatchOptions),
        *make_table(TITLES, make_rows(list(list_fields(WatchOptions)))),
    )


def make_spark_page() -> str:
    """docs/reference/spark-options.md. Raises MissingDescriptionError."""
    return make_page(
        "Options of the Spark source",
        'The options of `spark.readStream.format("spanner-changes")` and of `spark.read`:'
        " [the Spark source](../spark.md). Names ignore case, every value is a text. An unknown"
        " name is an error that suggests the nearest known one.",
        "",
        *make_table(TITLES, make_rows(list(list_fields(SourceOptions)), to_camel)),
        "A duration is `500ms`, `1s`, `5m`, `2h`, `1d` or plain seconds; a start is `latest`,"
        " `earliest` or a timestamp such as `2026-01-31T12:00:00Z`; a list has commas; a table is a"
        " JSON object.",
    )
