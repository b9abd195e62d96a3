"""Plots as plain values."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """Frozen, with nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(Value):
    """A line of a chart; a None leaves a gap."""

    label: str
    points: tuple[tuple[float, float | None], ...]


class Chart(Value):
    """A plot of a report."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    bars: bool = False
    """A bar for the one point of each line."""
    percentiles: bool = False
    """x is 1 / (1 - percentile): 10 is p90, 100 is p99."""
