"""Errors of the operating system about files: what they are, and what to do."""

from __future__ import annotations

import errno

ADVICE = {
    errno.ENOENT: "name one that exists",
    errno.EEXIST: "name another one",
    errno.EISDIR: "name a file in it",
    errno.ENOTDIR: "name another place",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "name the file itself",
    errno.EACCES: "allow this user, or name another place",
    errno.EPERM: "allow this user, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
}
MISNAMED = frozenset({errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG})
OTHERWISE = "see whether the file and its disk are well, or name another one"


def describe_system_error(error: OSError) -> str:
    """What the system says, and what to do about it."""
    said = error.strerror or str(error) or type(error).__name__
    return f"{said}; {ADVICE.get(error.errno or 0, OTHERWISE)}"


def is_misnamed(error: OSError) -> bool:
    """Whether another name is needed, rather than another state of the disk."""
    return error.errno in MISNAMED
