"""Which backups are kept: the newest ones of each hour, day, week and month, as with restic and borg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from attrs import frozen

T = TypeVar("T")


@frozen
class RetentionPolicy:
    """
    The number of backups to keep.

    @ivar last: The newest backups.
    @ivar hourly: Hours that have a backup, of which the newest backup is kept; hours without backups do not count.
    @ivar daily: The same for days.
    @ivar weekly: The same for ISO weeks.
    @ivar monthly: The same for months.
    """

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    @property
    def keeps_all(self) -> bool:
        """Return whether no number is set, so that no backup is ever removed."""
        return not (self.last or self.hourly or self.daily or self.weekly or self.monthly)


def _iso_week(moment: datetime) -> object:
    return moment.isocalendar()[:2]


_PERIODS: Final[Mapping[str, Callable[[datetime], object]]] = {
    "hourly": lambda moment: (moment.date(), moment.hour),
    "daily": lambda moment: moment.date(),
    "weekly": _iso_week,
    "monthly": lambda moment: (moment.year, moment.month),
}


def select_kept(backups: Sequence[tuple[datetime, T]], policy: RetentionPolicy) -> dict[int, list[str]]:
    """
    Return which backups a policy keeps, and why. The newest one is always kept.

    @param backups: The time of each backup, in UTC, with anything.
    @return: By the index in C{backups}, the reasons: C{["last", "daily"]}.
    """
    newest_first = sorted(range(len(backups)), key=lambda index: (backups[index][0], index), reverse=True)
    reasons: dict[int, list[str]] = {}
    if policy.keeps_all:
        return {index: ["all"] for index in newest_first}
    for index in newest_first[: max(policy.last, 1)]:
        reasons.setdefault(index, []).append("last")
    for name, period_of in _PERIODS.items():
        left: int = getattr(policy, name)
        seen: object = None
        for index in newest_first:
            if not left:
                break
            period = period_of(backups[index][0])
            if period != seen:
                seen = period
                left -= 1
                reasons.setdefault(index, []).append(name)
    return reasons
