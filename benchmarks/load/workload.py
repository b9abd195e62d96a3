"""What is written: how much, how fast, to which keys; one value, the same for every process."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

KeyDistribution = Literal["uniform", "zipf", "sequential"]
"""Which keys are updated: all alike, few of them most of the time (exponent 1.1), or one after
another. Inserted keys are spread over INT64, or ascend with ``sequential``."""

Profile = Literal["steady", "ramp", "steps"]


class Workload(BaseModel):
    """A load.

    ``transactions`` are transactions a second over all writers and tables, each of ``mutations``
    rows of one table. ``inserts`` is the share of transactions that insert; the others update rows
    that were there before, of which each table has ``rows``. The profile ``ramp`` raises the rate
    evenly from ``transactions`` to ``until``, ``steps`` in ``steps`` equal steps. ``writers`` are
    processes, each with ``threads`` commits under way at most. What is due in the first ``warm_up``
    seconds is verified, but counts in no latency.

    ``changing`` of the tables are written to, the first ones; 0 is all of them.

    With ``burst`` every ``burst_every``-th transaction updates so many rows, which then share one
    commit timestamp; the others update rows of the latest burst. Each burst takes the next rows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    transactions: Annotated[float, Field(gt=0)] = 20.0
    mutations: Annotated[int, Field(ge=1, le=10_000)] = 50
    seconds: Annotated[float, Field(gt=0)] = 10.0
    warm_up: Annotated[float, Field(ge=0)] = 0.0
    profile: Profile = "steady"
    until: Annotated[float, Field(gt=0)] | None = None
    steps: Annotated[int, Field(ge=2)] = 5
    writers: Annotated[int, Field(ge=1)] = 1
    threads: Annotated[int, Field(ge=1)] = 8
    dml: bool = False
    inserts: Annotated[float, Field(ge=0, le=1)] = 0.5
    keys: KeyDistribution = "uniform"
    rows: Annotated[int, Field(ge=0)] = 10_000
    row_bytes: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    tables: Annotated[int, Field(ge=1, le=2_000)] = 1
    changing: Annotated[int, Field(ge=0)] = 0
    burst: Annotated[int, Field(ge=0, le=10_000)] = 0
    burst_every: Annotated[int, Field(ge=1)] = 100
    seed: int = 1

    @model_validator(mode="after")
    def _possible(self) -> Workload:
        if self.rows == 0 and self.inserts < 1:
            raise ValueError("no rows to update: set rows above 0, or inserts to 1")
        if self.warm_up >= self.seconds:
            raise ValueError("the whole load would be warm-up: set warm_up below seconds")
        if self.burst and (self.burst > self.rows // self.writers or self.tables > 1):
            raise ValueError("a burst needs one table with enough rows for each writer")
        if self.changing > self.tables:
            raise ValueError("more tables would change than there are: set changing to tables")
        if self.profile != "steady" and self.until is None:
            raise ValueError(f"the profile {self.profile} needs until: set it to the last rate")
        return self

    @property
    def mutations_per_second(self) -> float:
        """Rows a second, at the beginning."""
        return self.transactions * self.mutations
