"""Errors of ours reach Spark as their sentence. Spark puts what a Python process writes of an error
into its own message, and that is a traceback first, unless a variable says otherwise."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from watcher.model.errors import WatcherError

LOG = logging.getLogger("watcher.spark")
HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def lead_with_sentence(call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A function that Spark calls: of an error of ours Spark shows the sentence alone. An error
    that nobody foresaw keeps its traceback."""
    if inspect.isgeneratorfunction(call):

        @wraps(call)
        def iterate(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
            with hidden_traceback():
                yield from call(*args, **kwargs)

        return iterate

    @wraps(call)
    def answer(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with hidden_traceback():
            return call(*args, **kwargs)

    return answer


@contextmanager
def hidden_traceback() -> Iterator[None]:
    """Hides the traceback of an error of ours, which is logged for those who look for it. The
    process ends with the error, so that the variable says nothing to what comes later."""
    try:
        yield
    except WatcherError:
        LOG.debug("the error was raised here:", exc_info=True)
        os.environ[HIDE_TRACEBACK] = "1"
        raise
