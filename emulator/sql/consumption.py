"""Nothing that was parsed is ignored: every part of a tree that no handler has read is refused.

A tree has clauses and arguments that not every handler knows. Which parts of each node the compiler
reads is recorded while it works; what is left when it is done would have been dropped in silence.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from emulator import errors

SPELLING = {"is_string", "nested", "over", "quoted"}
"""Arguments that say how something was written, not what it means."""

OPERANDS = {"this", "expression", "expressions"}


class RecordedArgs(dict[str, Any]):
    """The arguments of a node; ``read`` are the names of those that were looked at."""

    __slots__ = ("read",)

    def __init__(self, args: dict[str, Any], read: set[str]) -> None:
        super().__init__(args)
        self.read = read

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As ``dict.get``, recorded."""
        self.read.add(name)
        return super().get(name, default)


def record(*trees: exp.Expr) -> list[exp.Expr]:
    """Records from now on what is read of the trees; returns their nodes."""
    nodes = list(trees)
    for node in nodes:
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [each for each in value if isinstance(each, exp.Expr)]
        node.args = RecordedArgs(node.args, set())
    return nodes


def copy_recorded(node: exp.Expr) -> exp.Expr:
    """A copy to compile in place of a node: what is read of it counts as read of the node."""
    twin: exp.Expr = node.copy()
    for original, other in zip(node.walk(), twin.walk(), strict=True):
        if isinstance(original.args, RecordedArgs):
            other.args = RecordedArgs(other.args, original.args.read)
    return twin


def refuse_unread(nodes: list[exp.Expr]) -> None:
    """Raises UNIMPLEMENTED for a part of the nodes that nothing has read since ``record``."""
    for node in nodes:
        args = node.args
        if isinstance(args, RecordedArgs) and not args.keys() <= args.read:
            refuse_args(node, args)


def refuse_args(node: exp.Expr, args: RecordedArgs) -> None:
    """Raises UNIMPLEMENTED for an argument of a node that says something and was not read."""
    for name, value in args.items():
        if name not in args.read and name not in SPELLING and value not in (None, False, [], ""):
            text = repr(node.sql("bigquery")[:80])
            if name in OPERANDS:
                raise errors.unimplemented(f"{text} in its place")
            raise errors.unimplemented(f"{name.strip('_').replace('_', ' ').upper()} in {text}")
