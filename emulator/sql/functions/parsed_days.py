"""The day that the elements of a format add up to: of those of the same part, the last counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

PIVOT = 69
"""Two digits of a year from here on are of the 20th century."""


@dataclass(slots=True)
class ParsedDay:
    """``position`` counts the elements of the format; ``counted`` are those of weeks and of days of
    a year: letter -> value and position.
    """

    position: int = 0
    year: int = 1970
    month: int = 1
    day: int = 1
    century: int = 0
    uses_century: bool = False
    is_century_given: bool = False
    year_at: int = -1
    month_at: int = -1
    day_at: int = -1
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)

    def set_year(self, year: int) -> None:
        """A year of four digits."""
        self.year, self.year_at = year, self.position
        self.uses_century = self.is_century_given = False

    def set_short_year(self, year: int) -> None:
        """A year of two digits."""
        self.year, self.year_at = year, self.position
        if not self.is_century_given:
            self.century = 20 if year < PIVOT else 19
        self.uses_century = True

    def set_century(self, century: int) -> None:
        """The digits before those of a short year."""
        if not self.uses_century:
            self.year = 0
        self.century, self.year_at = century, self.position
        self.uses_century = self.is_century_given = True

    def set_month(self, month: int) -> None:
        """A month."""
        self.month, self.month_at = month, self.position

    def set_quarter(self, quarter: int) -> None:
        """The first day of a quarter."""
        self.set_month(quarter * 3 - 2)
        self.set_day(1)

    def set_day(self, day: int) -> None:
        """A day of the month."""
        self.day, self.day_at = day, self.position

    def add(self, letter: str, value: int) -> None:
        """A weekday (u), a week (U, W, V), a day of the year (j, J) or a year of weeks (G, g)."""
        self.counted.pop(letter, None)
        self.counted[letter] = (value, self.position)

    def resolve(self) -> date:
        """The day. Raises ValueError for one that there is not."""
        return date(*self.numbers())

    def numbers(self) -> tuple[int, int, int]:
        """Year, month, day; they may be no date. Raises ValueError for weeks that do not fit."""
        if self.uses_century:
            self.year += self.century * 100
            self.uses_century = False
        is_plain = max(self.year_at, self.month_at, self.day_at) >= 0
        is_plain = is_plain or any(letter in self.counted for letter in "jUW")
        if not is_plain and ("G" in self.counted or "g" in self.counted):
            first = self._resolve_iso()
            return first.year, first.month, first.day
        self._apply_counted()
        return self.year, self.month, self.day

    def _apply_counted(self) -> None:
        """A week, or a day of the year, in place of what was read before it."""
        week_at = max((self.counted[each][1] for each in "UW" if each in self.counted), default=-1)
        yearday, yearday_at = self.counted.get("j", (0, -1))
        if max(week_at, yearday_at) < 0:
            return
        if yearday_at > week_at or (yearday_at >= 0 and "u" not in self.counted):
            counted, at = self._day_of_year(yearday), yearday_at
        else:
            counted, at = self._first_of_week(week_at), week_at
        if self.year_at < at:
            self.year = counted.year
        if self.month_at < at:
            self.month = counted.month
        if self.day_at < at:
            self.day = counted.day

    def _day_of_year(self, number: int) -> date:
        day = date(self.year, 1, 1) + timedelta(days=number - 1)
        if day.year != self.year:
            raise ValueError(f"Year {self.year} has 365 days, but the day of year was {number}")
        return day

    def _first_of_week(self, at: int) -> date:
        """The first day of %U or %W of the year."""
        if "u" in self.counted:
            raise ValueError("Weekday parse elements are not supported yet")
        letter = next(each for each in "UW" if self.counted.get(each, (0, 0))[1] == at)
        week = self.counted[letter][0]
        first = date(self.year, 1, 1)
        first += timedelta(days=((6 if letter == "U" else 0) - first.weekday()) % 7)
        day = first + timedelta(days=7 * (week - 1))
        if day.year > self.year or (day + timedelta(days=6)).year < self.year:
            raise ValueError(f"Week number {week} is invalid for year {self.year}")
        return day

    def _resolve_iso(self) -> date:
        """Of a year of weeks: its first day, or a day of it."""
        kept = [(place, letter) for letter, (_, place) in self.counted.items() if letter in "JV"]
        last = max(kept, default=(0, ""))[1]
        if last == "V" and ("u" in self.counted or "J" not in self.counted):
            raise ValueError("ISO parse elements are not supported yet")
        year = self._iso_year()
        number = self.counted["J"][0] if "J" in self.counted else 1
        day = date.fromisocalendar(year, 1, 1) + timedelta(days=number - 1)
        if day.isocalendar().year != year:
            raise ValueError(f"ISO year {year} has no day of year {number}")
        return day

    def _iso_year(self) -> int:
        """The later one of %G and %g."""
        long, short = self.counted.get("G", (0, -1)), self.counted.get("g", (0, -1))
        if long[1] > short[1]:
            return long[0]
        return short[0] + (2000 if short[0] < PIVOT else 1900)
