"""Functions of the user: the one place where they are accepted and called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from watcher.model.errors import ConfigurationError, DeliveryError, WatcherError

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Callback(Generic[Argument]):
    """A function that has done its work when it returns. What it returns is ignored."""

    def __init__(self, function: Callable[[Argument], object]) -> None:
        """Raises ConfigurationError for a function whose call alone runs nothing."""
        refuse_deferred(function)
        self._function = function

    def __call__(self, argument: Argument) -> None:
        """Calls the function. Raises what it raises, and DeliveryError as ``call`` does: the
        argument was not taken."""
        call(self._function, argument, DeliveryError)


def call(
    function: Callable[[Argument], Result], argument: Argument, refusal: type[WatcherError]
) -> Result:
    """What a function of the user returns. Raises ``refusal`` for an awaitable or a generator: its
    work has not begun."""
    result = function(argument)
    if result is None or not is_deferred(result):
        return result
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()  # nobody will run it, and Python would say so once more
    raise refusal(
        f"the callback {name_function(function)} returned {describe_deferred(result)}: its work is"
        " not done, and does not count; return after it, such as with asyncio.run, and start again"
    )


def refuse_deferred(function: Callable[..., object]) -> None:
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
            f"the callback {name_function(function)} is {kind}: a call of it runs nothing, and all"
            " that it is to do would be lost; use a function that returns after its work, such as"
            " with asyncio.run"
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
