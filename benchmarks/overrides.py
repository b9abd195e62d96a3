"""``--set key=value``: settings of a scenario from the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from watcher.model.errors import ConfigurationError
from watcher.settings.fields import describe_validation_error, unknown_option

Settings = TypeVar("Settings", bound=BaseModel)
Path = tuple[str, ...]


def settings_of(kind: type[Settings], overrides: Iterable[str]) -> Settings:
    """A scenario's own settings with some of them replaced.

    A key is the last name (``shards``) or a longer one (``preparation.shards``); lists have commas
    between. Raises ConfigurationError.
    """
    return change_settings(kind(), overrides)


def change_settings(settings: Settings, overrides: Iterable[str]) -> Settings:
    """These settings, with some of them replaced. Raises ConfigurationError."""
    values = settings.model_dump()
    paths = list_paths(settings)
    for each in overrides:
        key, equals, text = each.partition("=")
        if not equals:
            raise ConfigurationError(f"invalid setting '{each}': use --set key=value")
        path = find_path(key.strip(), paths)
        inner: dict[str, Any] = values
        for name in path[:-1]:
            inner = inner[name]
        is_list = isinstance(paths[path], tuple)
        inner[path[-1]] = tuple(text.split(",") if text else ()) if is_list else text
    try:
        return type(settings).model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(describe_validation_error(error)) from error


def list_paths(settings: BaseModel, before: Path = ()) -> dict[Path, object]:
    """Every setting, inner ones by their whole path, with its value."""
    values_by_path: dict[Path, object] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            values_by_path |= list_paths(value, (*before, name))
        else:
            values_by_path[(*before, name)] = value
    return values_by_path


def find_path(key: str, paths: Mapping[Path, object]) -> Path:
    """The one setting whose path ends with a key; an outer one before those further in."""
    parts = tuple(key.split("."))
    fitting = sorted((p for p in paths if p[-len(parts) :] == parts), key=len)
    if not fitting:
        raise unknown_option(key, (path[-1] for path in paths))
    if len(fitting) > 1 and len(fitting[0]) == len(fitting[1]):
        names = " or ".join(".".join(path) for path in fitting)
        raise ConfigurationError(f"ambiguous setting '{key}': use {names}")
    return fitting[0]


def flat(settings: BaseModel) -> dict[str, object]:
    """Every setting by its whole name, for people."""
    return {".".join(path): value for path, value in list_paths(settings).items()}


def list_settings(settings: BaseModel) -> dict[str, object]:
    """Every setting by its whole name, as JSON has it."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in flat(settings).items()
    }
