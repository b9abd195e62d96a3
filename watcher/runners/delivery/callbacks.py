"""Functions of the user that take changes: the one place where they are accepted and called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from watcher.errors import ConfigurationError, DeliveryError

Argument = TypeVar("Argument")


class Callback(Generic[Argument]):
    """A function that has done its work when it returns. What it returns is ignored, unless that
    shows that the work has not begun."""

    def __init__(self, function: Callable[[Argument], object]) -> None:
        """Raises ConfigurationError for a function whose call alone runs nothing."""
        self._function = function
        self._name = name_function(function)
        refuse_deferred(function, self._name)

    def __call__(self, argument: Argument) -> None:
        """Calls the function. Raises what it raises, and DeliveryError when it has returned an
        awaitable or a generator: the argument was not taken."""
        result = self._function(argument)
        if result is None or not is_deferred(result):
            return
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()  # nobody will run it, and Python would say so once more
        raise DeliveryError(
            f"the callback {self._name} returned {describe_deferred(result)}, so that it has not"
            " taken the change; return after the work is done, such as with asyncio.run, and"
            " restart: the change is delivered again"
        )


def refuse_deferred(function: Callable[..., object], name: str) -> None:
    """Raises ConfigurationError for a function or a method that only makes a coroutine or a
    generator when it is called. One that wraps another is judged by what it returns."""
    called = function
    while isinstance(called, partial):
        called = called.func
    for each in (called, type(called).__call__):
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            kind = "an async function"
        elif inspect.isgeneratorfunction(each):
            kind = "a generator function"
        else:
            continue
        raise ConfigurationError(
            f"the callback {name} is {kind}: a call of it runs nothing, and every change would be"
            " lost; use a function that returns after its work, such as with asyncio.run"
        )


def is_deferred(result: object) -> bool:
    """Whether a result is work that somebody has yet to run or to wait for."""
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)


def describe_deferred(result: object) -> str:
    """What has come back in place of nothing."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        return "a generator that nobody runs"
    return f"an awaitable ({type(result).__name__}) that nobody awaits"


def name_function(function: Callable[..., object]) -> str:
    """A function in a message: its own name, else that of its class."""
    called = function.func if isinstance(function, partial) else function
    name = getattr(called, "__qualname__", None) or type(called).__qualname__
    return f"'{name}'"
