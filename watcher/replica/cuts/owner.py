"""Who writes a replica: the database and the consumer that a folder belongs to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from watcher.model.errors import ConfigurationError, CopyConflictError
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.stored import FORMAT, UNPROVED, read_stored
from watcher.replica.stores.stored_files import (
    create_new,
    open_file_system,
    read_whole,
    replace_known,
)

NAME, TAKEN = "_owner.json", "taken"
TAKE_OVER = (
    "use another folder, or take it over with 'spanner-watcher replicate --take-over', which loads"
    " every table again"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """A ``database`` by its path, a ``consumer``, and the format of the ``copies``."""

    database: str
    consumer: str
    copies: str

    @classmethod
    def of_cut(cls, cut: Cut) -> Owner:
        """Who has written a cut."""
        return cls(cut.database, cut.consumer, cut.copies)

    def to_text(self, taken: bool = False) -> str:
        """As it is stored; ``taken``: there was another owner before."""
        values: dict[str, Any] = {"format": FORMAT, "database": self.database}
        values |= {"consumer": self.consumer, "copies": self.copies}
        return json.dumps(values | ({TAKEN: True} if taken else {}), indent=1)

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Owner:
        """As it was stored."""
        return cls(stored["database"], stored["consumer"], stored["copies"])

    def __str__(self) -> str:
        return f"{self.database} by consumer '{self.consumer}' in format {self.copies}"


class OwnerFile:
    """The file in the folder of a replica, or of files of changes, that names its owner."""

    def __init__(self, folder: str, advice: str = TAKE_OVER) -> None:
        """``advice``: what somebody can do whose folder it is not."""
        self._address = folder
        self._advice = advice
        self._files, base = open_file_system(folder)
        self._folder = PurePosixPath(base)
        self._path = str(self._folder / NAME)

    def read(self) -> Owner | None:
        """The owner; None for a folder without one, as an earlier release has left it."""
        try:
            return read_stored(self._files, self._path, Owner.from_stored, UNPROVED)
        except FileNotFoundError:
            return None

    def was_taken(self) -> bool:
        """Whether the owner has taken it over: what is there may be of another database."""
        try:
            return read_stored(self._files, self._path, lambda s: bool(s.get(TAKEN)), UNPROVED)
        except FileNotFoundError:
            return False

    def claim(self, owner: Owner) -> None:
        """Makes the folder the owner's, before anything else is written there. Raises
        ConfigurationError where it belongs to another one."""
        there = self.read() or self._create(owner)
        if there != owner:
            raise self.refuse(there, owner)

    def refuse(self, there: Owner, owner: Owner) -> ConfigurationError:
        """The error of somebody who is not the owner."""
        return ConfigurationError(
            f"{self._folder} belongs to {there}, not to {owner}: {self._advice}"
        )

    def take(self, owner: Owner) -> None:
        """Makes the folder the owner's, whoever has it. Raises ConfigurationError where somebody
        else does so at the same time."""
        try:
            before = read_whole(self._files, self._path).encode()
        except FileNotFoundError:  # a folder of an earlier release
            create_new(self._address, NAME, owner.to_text(taken=True).encode())
            self.claim(owner)
            return
        text = owner.to_text(taken=True)
        if not replace_known(self._address, NAME, before, text.encode()):
            raise ConfigurationError(
                f"{self._folder} is taken over by somebody else at the same time: look who has it"
                f" now, in {self._path}"
            )

    def check(self, owner: Owner) -> None:
        """Raises CopyConflictError where another one has taken the folder over."""
        there = self.read()
        if there != owner:
            raise CopyConflictError(
                f"{self._folder} belongs to {there or 'nobody'} now, not to {owner}: stop one of"
                " the two replicators, or give each a folder of its own"
            )

    def _create(self, owner: Owner) -> Owner:
        """Writes the file if there is none; returns who is the owner then."""
        create_new(self._address, NAME, owner.to_text().encode())
        there = self.read()
        assert there is not None, "it was written, and nobody removes it"
        return there
