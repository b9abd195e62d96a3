"""The settings of a watcher, from a file and from flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from spanner_schema.model.selection import is_glob
from watcher.cli.options import POSITIONS_TABLE
from watcher.model.errors import ConfigurationError
from watcher.process.text_files import read_toml
from watcher.settings.watcher import WatchConfig, parse_watch_config

OF_TABLES = "table.*."
"""How a flag begins that is an option of every table that is named."""
OF_ONE_TABLE = {
    "where": "Singers=City = 'Bern'",
    "columns": "Singers=Name,City",
    "mask": "Singers.Email=hash",
}
"""Flags that name the table themselves, and how they are written."""
OF_LAYOUTS = {
    "partition_by": "Singers=Country",
    "sort_by": "Singers=Name",
    "file_megabytes": "Singers=64",
}
"""The same, of the layout of a copy."""
COMMAS = re.compile(r",(?![^(]*\))")
"""Those that are in no parentheses."""
KEY_SOURCES = ("env", "file")


def load_config(path: Path | None, flags: Mapping[str, object]) -> WatchConfig:
    """Reads the file, if there is one, and sets the flags that are given on top of it: those that
    are not None, False, empty or the default of ``--positions-table``.

    A flag names the option of a section with a dot: ``stream.name``. One of ``table.*`` is of every
    table that is named. Raises ConfigurationError.
    """
    values = read_toml(path) if path is not None else {}
    if flags.get("stream.name") is not None:
        flags = {"capture": "change-stream", **flags}
    for name, value in flags.items():
        if not is_given(name, value):
            continue
        if name.startswith(OF_TABLES):
            set_of_tables(values, name.removeprefix(OF_TABLES), value)
            continue
        if name in OF_ONE_TABLE:
            set_of_named(values, name, value)
            continue
        if name in OF_LAYOUTS:
            set_of_layouts(values, name, value)
            continue
        section, _, option = name.rpartition(".")
        if section:
            values[section] = {**read_section(values, section), option: value}
        else:
            values[option] = value
    if "database" not in values:
        raise ConfigurationError(
            "option 'database' is missing: name it with --database, or in a file with --config"
        )
    return parse_watch_config(values)


def is_given(name: str, value: object) -> bool:
    """Whether a flag was given; 0 is a value."""
    if name == "positions.table":
        return value != POSITIONS_TABLE
    return value is not None and value is not False and value != []


def read_section(values: Mapping[str, object], name: str) -> dict[str, object]:
    """A section of the file; empty if it is missing. Raises ConfigurationError."""
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigurationError(f"'{name}' must be a section: write [{name}]")
    return section


def set_of_tables(values: dict[str, object], option: str, value: object) -> None:
    """Sets an option of every table that is named. Raises ConfigurationError for globs."""
    if option == "shard_values":
        value = read_shard_values(value)
    tables = values.get("tables", ("*",))
    names = list(map(str, tables)) if isinstance(tables, Sequence) else []
    flag = option.removesuffix("s").replace("_", "-")
    if not names or any(map(is_glob, names)):
        raise ConfigurationError(
            f"--{flag} says how single tables are polled: name them with --table, without globs"
        )
    known = sections = read_section(values, "table")
    for name in names:
        section = spell_table(name, known)
        sections = {**sections, section: {**read_section(sections, section), option: value}}
    values["table"] = sections


def spell_table(name: str, sections: Iterable[str]) -> str:
    """A table as the file spells it, if it has a section of it: names ignore case."""
    return {each.casefold(): each for each in sections}.get(name.casefold(), name)


def set_of_named(values: dict[str, object], flag: str, given: object) -> None:
    """Sets options of the tables that a flag names itself. Raises ConfigurationError."""
    for text in map(str, given) if isinstance(given, Sequence) else ():
        name, sign, value = text.partition("=")
        table, dot, column = name.strip().rpartition(".") if flag == "mask" else (name, ".", "_")
        table, value = table.strip(), value.strip()
        if not (sign and table and value and dot and column):
            raise ConfigurationError(
                f"invalid --{flag} '{text}': write it as --{flag} \"{OF_ONE_TABLE[flag]}\""
            )
        sections = read_section(values, "table")
        table = spell_table(table, sections)
        section = read_section(sections, table)
        if flag == "mask":
            section = {**section, "masks": {**read_section(section, "masks"), column: value}}
        elif flag == "columns":
            names = [each.strip() for each in value.split(",") if each.strip()]
            section = {**section, "columns": names}
        else:
            section = {**section, flag: value}
        values["table"] = {**sections, table: section}


def set_of_layouts(values: dict[str, object], flag: str, given: object) -> None:
    """Sets options of the copies' layouts. Raises ConfigurationError."""
    for text in map(str, given) if isinstance(given, Sequence) else ():
        table, sign, value = (each.strip() for each in text.partition("="))
        number = flag == "file_megabytes"
        if not (sign and table and value) or (number and not value.isdecimal()):
            option = flag.replace("_", "-")
            raise ConfigurationError(
                f"invalid --{option} '{text}': write it as --{option} \"{OF_LAYOUTS[flag]}\""
            )
        replica = read_section(values, "replica")
        layouts = read_section(replica, "layout")
        table = spell_table(table, layouts)
        names = [each.strip() for each in COMMAS.split(value)]
        section = {**read_section(layouts, table), flag: int(value) if number else names}
        values["replica"] = {**replica, "layout": {**layouts, table: section}}


def read_mask_key(text: str) -> dict[str, str]:
    """Where the key of hashes is: env:NAME or file:PATH. Raises ConfigurationError."""
    source, _, name = text.partition(":")
    if source not in KEY_SOURCES or not name:
        raise ConfigurationError(
            "invalid --mask-key: say where the key is, as env:NAME or file:PATH; it is not written"
            " on the command line, which others can see"
        )
    return {source: name}


def read_shard_values(given: object) -> object:
    """The values of a shard on the command line: numbers where all are."""
    texts = tuple(map(str, given)) if isinstance(given, Sequence) else ()
    numbers = all(text.removeprefix("-").isdecimal() for text in texts)
    return tuple(map(int, texts)) if numbers else texts
