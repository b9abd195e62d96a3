"""A group of commands whose help is fast."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """Shows its help if there is no command.

    Ignores its own options if a command comes first: to check options, typer loads pydantic, which
    doubles the time of ``COMMAND --help``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ``TyperGroup.parse_args``."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        if args and not args[0].startswith("-"):
            self.params = []
            self.add_help_option = False
        return super().parse_args(ctx, args)
