"""The ids of instances, databases and what else has a resource name: Spanner's rules for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class IdRule:
    """Which ids Spanner takes for one kind of resource."""

    what: str
    marks: str
    """What may stand in an id beside lower-case letters and digits."""
    length_max: int

    def explain(self, identifier: str) -> str | None:
        """What is wrong with an id; None for one that Spanner takes."""
        pattern = rf"[a-z][a-z0-9{re.escape(self.marks)}]{{0,{self.length_max - 2}}}[a-z0-9]"
        if re.fullmatch(pattern, identifier):
            return None
        marks = " and ".join(f"'{mark}'" for mark in self.marks)
        return (
            f"the {self.what} id '{identifier}' must have 2 to {self.length_max} lower-case"
            f" letters, digits, {marks}, begin with a letter and end with a letter or a digit"
        )


class IdRules(Enum):
    """The rules, each as the administrative API documents it."""

    INSTANCE = IdRule("instance", "-", 64)
    INSTANCE_PARTITION = IdRule("instance partition", "-", 64)
    DATABASE = IdRule("database", "_-", 30)
    BACKUP = IdRule("backup", "_-", 60)
    BACKUP_SCHEDULE = IdRule("backup schedule", "_-", 60)

    def explain(self, identifier: str) -> str | None:
        """What is wrong with an id; None for one that Spanner takes."""
        return self.value.explain(identifier)
