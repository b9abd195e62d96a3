"""Groups of commands in one style of help, and their exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar, NoReturn, TypeVar

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from spanner_schema.model.errors import DdlError
from watcher.model.errors import ConfigurationError, FileWriteError, OutputClosedError, WatcherError
from watcher.process.extras import DISTRIBUTION
from watcher.process.private_files import FULL
from watcher.process.system_errors import describe_system_error, is_misnamed
from watcher.process.terminal.console import (
    drop_output,
    flush_output,
    make_output_error,
    print_error,
    silence,
)
from watcher.process.terminal.loading import declare, defer, read_entry_points
from watcher.process.terminal.mode import MODE, list_common_options
from watcher.process.terminal.values import check_numbers, check_texts
from watcher.process.version import read_version

Command = TypeVar("Command", bound=Callable[..., Any])
EXIT_USAGE = 2
FAULT = "this is a fault of spanner-watcher"
EXIT_INTERRUPTED = 130

HELP_SETTINGS = {"terminal_width": 80}
"""Help has lines of this length whatever the terminal: what a narrow one wraps can still be
copied, while help that is wrapped for it cuts addresses and commands."""

Explain = Callable[[Exception], WatcherError | None]
"""What an error of a library means to a user; None for a fault of the program."""


class LoadedCommands(MutableMapping[str, Any]):
    """The commands of a group by name. A file is loaded when somebody looks its command up;
    entry points are read for a name that ``files`` does not have, and to list all."""

    def __init__(self, own: Mapping[str, Any], files: Mapping[str, str], group: str) -> None:
        self._loaded = dict(own)
        self._files = files
        self._group = group

    @cached_property
    def _registered(self) -> Mapping[str, str]:
        return read_entry_points(self._group) if self._group else {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            where = self._files.get(name) or self._registered[name]
            self._loaded[name] = load_command(name, where)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._files, *self._registered, *self._loaded)))

    def __len__(self) -> int:
        return len(list(iter(self)))


class CommandGroup(TyperGroup):
    """Shows its help if there is no command.

    Ignores its own options if a command comes first: to check options, typer loads pydantic, which
    doubles the time of ``COMMAND --help``.
    """

    files: ClassVar[Mapping[str, str]] = {}
    entry_points: ClassVar[str] = ""

    def __init__(self, *, commands: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LoadedCommands(commands or {}, self.files, self.entry_points)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ``TyperGroup.parse_args``."""
        with translate_closed_output():
            if not args and not ctx.resilient_parsing:
                typer.echo(ctx.get_help())
                ctx.exit(EXIT_USAGE)
            if args and not args[0].startswith("-"):
                self.params = []
                self.add_help_option = False
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """As ``TyperGroup.invoke``."""
        with translate_closed_output():
            return super().invoke(ctx)


@contextmanager
def translate_closed_output() -> Iterator[None]:
    """Raises OutputClosedError when the reader of the output has gone; typer would exit with 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosedError from error


class PlainCommand(TyperCommand):
    """A command that checks its values, as ``values.py`` says; its help names an argument by its
    name alone, as it names options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As ``TyperCommand.get_params``: with the options that every command has."""
        own = {each.name for each in self.params}
        common = [each for each in list_common_options() if each.name not in own]
        *rest, helping = super().get_params(ctx)
        return [*rest, *common, helping]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ``TyperCommand.parse_args``."""
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        if not (ctx.resilient_parsing or given.get("help")):
            check_texts(ctx, self.params, given)
        rest = super().parse_args(ctx, args)
        check_numbers(ctx, self.params)
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As ``TyperCommand.format_options``."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                name, text = record
                is_argument = param.param_type_name == "argument"
                shown = name.partition(" ")[0] if is_argument else name
                records[param.param_type_name].append((shown, text))
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            if records[kind]:
                with formatter.section(title):
                    formatter.write_dl(records[kind])


class CommandApp(typer.Typer):
    """A group of commands in the one style of help that the project has.

    ``files`` has functions (``module:function``) and groups (``module:app``) by the names of the
    commands. ``EXTRAS`` of such a module names the extras that its commands need to run. Those that
    other packages register under the group ``entry_points`` come after them.
    """

    def __init__(
        self, files: Mapping[str, str] | None = None, entry_points: str = "", **options: Any
    ) -> None:
        where = {"files": files or {}, "entry_points": entry_points}
        super().__init__(
            cls=type("CommandGroup", (CommandGroup,), where),
            context_settings=HELP_SETTINGS,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,
            **({"add_completion": False} | options),
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Command], Command]:
        """As ``Typer.command``."""
        return super().command(name, **({"cls": PlainCommand} | options))


def load_command(name: str, where: str) -> Any:
    """The command, or the group, of a file (``module:function``, ``module:app``). Its module is
    imported when it runs."""
    module_name, _, attribute = where.partition(":")
    module = declare(module_name)
    found = getattr(module, attribute)
    app = found if isinstance(found, CommandApp) else CommandApp()
    if app is not found:
        app.command(name)(found)
    extras = getattr(module, "EXTRAS", ())
    for each in app.registered_commands:
        if each.callback is not None:
            each.callback = defer(module_name, extras, each.callback)
    command = typer.main.get_command(app)
    command.name = name
    return command


def show_version(wanted: bool) -> None:
    """Prints the version and ends, when it is asked for."""
    if wanted:
        typer.echo(f"{DISTRIBUTION} {read_version()}")
        raise typer.Exit


def run_commands(app: typer.Typer, name: str, explain: Explain) -> NoReturn:
    """Runs a command line and exits. Errors are one sentence; docs/exit-codes.md lists the codes.

    ``name`` is what the help calls the program. ``explain`` translates errors of libraries.
    """
    sys.exit(find_exit_code(app, name, explain))


def find_exit_code(app: typer.Typer, name: str, explain: Explain) -> int:
    """Runs a command line; the exit code. Raises only what is a fault of the program, with
    --verbose."""
    MODE.read(sys.argv[1:])
    try:
        # Without standalone mode, typer returns the code of an Exit instead of raising it.
        code = app(standalone_mode=False, prog_name=name)
        flush_output()
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except typer.TyperException as error:
        print_error(error.format_message(), "UsageError", EXIT_USAGE)
        return EXIT_USAGE
    except OutputClosedError as error:
        silence(sys.stdout)
        return error.exit_code
    except (WatcherError, DdlError) as error:
        return report(error)
    except Exception as error:
        explained = explain(error)
        if explained is None and MODE.verbose:
            raise
        return report(explained or describe_fault(error))
    return code if isinstance(code, int) else 0


def explain_system_error(error: Exception) -> WatcherError | None:
    """An error of the operating system, such as a file that cannot be written."""
    if not isinstance(error, OSError):
        return None
    if error.errno in FULL and error.filename is None:
        return make_output_error(error)
    what = f"use {error.filename}" if error.filename else "read or write"
    message = f"cannot {what}: {describe_system_error(error)}"
    return ConfigurationError(message) if is_misnamed(error) else FileWriteError(message)


def report(error: WatcherError | DdlError) -> int:
    """Prints an error; its exit code."""
    drop_output()
    print_error(str(error), type(error).__name__, error.exit_code)
    return error.exit_code


def describe_fault(error: Exception) -> WatcherError:
    """A fault of the program, and what to do."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return WatcherError(
        f"{FAULT} ({what}): run the command again with --verbose, and report the traceback"
    )
