"""What no option and no argument takes, whatever it means: looked for before a command runs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

NUMBER_MAX = 2**63 - 1
"""That of an INT64, and as seconds more than any clock has."""
EMPTY = "it is empty: give it a value, or leave it out"


def check_texts(ctx: Any, params: Sequence[Any], given: Mapping[str, Any]) -> None:
    """Raises BadParameter for an empty text: what a script hands over for a variable that is not
    set."""
    for param in params:
        if "" in as_list(given.get(param.name)):
            raise typer.BadParameter(EMPTY, ctx=ctx, param=param)


def check_numbers(ctx: Any, params: Sequence[Any]) -> None:
    """Raises BadParameter for numbers that nothing can be counted by."""
    for param in params:
        for value in as_list(ctx.params.get(param.name)):
            if isinstance(value, float | int) and not isinstance(value, bool):
                check_number(ctx, param, value)


def check_number(ctx: Any, param: Any, value: float) -> None:
    """Raises BadParameter for a number that nothing can be counted by."""
    if not math.isfinite(value) or abs(value) > NUMBER_MAX:
        raise typer.BadParameter(
            f"{value} is not a number between {-NUMBER_MAX} and {NUMBER_MAX}", ctx=ctx, param=param
        )


def as_list(value: Any) -> Sequence[Any]:
    """The values of an option, of one that is repeatable, too."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def to_file(path: Path | None) -> Path | None:
    """The callback of an option that names a file to be written. Raises BadParameter before there
    is anything to write into it, instead of after it."""
    if path is not None:
        check_path(path, path.parent, os.path.isdir, "is a folder: name a file in it")
    return path


def to_folder(path: Path | None) -> Path | None:
    """As ``to_file``, for a folder, which is made where it is missing."""
    if path is not None:
        check_path(path, path, lambda each: os.path.lexists(each) and not os.path.isdir(each))
    return path


def to_new_folder(path: Path | None) -> Path | None:
    """As ``to_folder``, for one that must not be there yet."""
    if path is not None:
        check_path(path, path, os.path.lexists, "exists: name a new folder")
    return path


def check_path(
    path: Path,
    folder: Path,
    is_wrong: Callable[[Path], bool],
    why: str = "is not a folder: name another place",
) -> None:
    """Raises BadParameter unless something can be written at a path: ``folder``, or the one that it
    would be made in, is there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be used: {error.strerror}") from error
    if is_wrong(path):
        raise typer.BadParameter(f"{path} {why}")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise typer.BadParameter(f"{folder} is not a folder: name another place")
    there = folder if os.path.isdir(folder) else folder.parent
    if not os.path.isdir(there):
        raise typer.BadParameter(f"there is no folder {there}: make it, or name another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise typer.BadParameter(f"the folder {there} cannot be written by this user: name another")
