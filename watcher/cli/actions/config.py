"""The settings of a watcher, from a file and from flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from watcher.errors import ConfigurationError
from watcher.settings.watcher import WatchConfig, parse_watch_config, read_toml


def load_config(path: Path | None, flags: Mapping[str, object]) -> WatchConfig:
    """Reads the file, if there is one, and sets the flags that are not None on top of it.

    A flag names the option of a section with a dot: ``stream.name``. Raises ConfigurationError.
    """
    values = read_toml(path) if path is not None else {}
    for name, value in flags.items():
        if value is None:
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


def read_section(values: Mapping[str, object], name: str) -> dict[str, object]:
    """A section of the file; empty if it is missing. Raises ConfigurationError."""
    section = values.get(name, {})
    if not isinstance(section, dict):
        raise ConfigurationError(f"'{name}' must be a section: write [{name}]")
    return section
