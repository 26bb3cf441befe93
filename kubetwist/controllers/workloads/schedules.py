"""
Computes the times of a cron schedule.

@see: C{github.com/robfig/cron}, C{spec.go}, C{constantdelay.go}; kubernetes, C{pkg/controller/cronjob/utils.go}.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from ...registry.batch.schedule import Schedule, read_schedule

#: Years after which the search for the next time ends, for example for February 31.
_YEARS: Final = 5
_MAX_STEPS: Final = 5000
#: Intervals before now, in seconds, that are searched for the most recent time.
_WINDOWS: Final = (3600.0, 86400.0, 32 * 86400.0, 366 * 86400.0, 1900 * 86400.0)
#: Number of missed times above which a warning is recorded.
TOO_MANY_MISSED: Final = 100


class CronSchedule:
    """
    The times of a schedule, in POSIX seconds.

    @raise CronError: The schedule is invalid.
    """

    def __init__(self, schedule: str, zone: str | None) -> None:
        """
        @param zone: The valid time zone, if the schedule does not contain one.
        """
        self._fields: Schedule = read_schedule(schedule)
        self._zone = _zone(self._fields.zone or zone or "UTC")

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment, or L{None} if there is none."""
        interval = self._fields.every
        if interval:
            return float(int(moment) + interval)
        fields = self._fields
        # Minutes start at the same moments in all current time zones.
        at = datetime.fromtimestamp((moment // 60 + 1) * 60, UTC)
        last = at.year + _YEARS
        for _ in range(_MAX_STEPS):
            local = at.astimezone(self._zone)
            if local.year > last:
                return None
            if local.month not in fields.months:
                year, month = (local.year, local.month + 1) if local.month < 12 else (local.year + 1, 1)
                at = self._later_of(at, datetime(year, month, 1, tzinfo=self._zone))
            elif not self._day_matches(local):
                day = local.date() + timedelta(days=1)
                at = self._later_of(at, datetime(day.year, day.month, day.day, tzinfo=self._zone))
            elif local.hour not in fields.hours:
                at += timedelta(minutes=60 - local.minute)
            elif local.minute not in fields.minutes:
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None

    def next_after(self, since: float, now: float) -> float | None:
        """Return the first time after C{now}. Intervals (C{@every}) start at C{since}."""
        interval = self._fields.every
        if interval:
            return int(since) + float(interval) * max(1, (now - int(since)) // interval + 1)
        return self.after(now)

    @staticmethod
    def _later_of(at: datetime, local: datetime) -> datetime:
        """Return a local time, adjusted if it does not exist because of daylight saving time."""
        return max(local.astimezone(UTC), at + timedelta(minutes=1))

    def _day_matches(self, local: datetime) -> bool:
        fields = self._fields
        day = local.day in fields.days
        weekday = local.isoweekday() % 7 in fields.weekdays
        return (day and weekday) if fields.any_day or fields.any_weekday else (day or weekday)

    def most_recent(self, since: float, now: float) -> tuple[float | None, bool]:
        """Return the last time after C{since} up to C{now}, and whether too many times were missed."""
        interval = self._fields.every
        if interval:
            count = int((now - int(since)) // interval)
            return (int(since) + float(count * interval) if count > 0 else None), count > TOO_MANY_MISSED
        last, count = None, 0
        following = self.after(since)
        while following is not None and following <= now and count <= TOO_MANY_MISSED:
            last, count = following, count + 1
            following = self.after(following)
        if count <= TOO_MANY_MISSED:
            return last, False
        for window in _WINDOWS:
            following = self.after(max(since, now - window))
            recent = None
            while following is not None and following <= now:
                recent = following
                following = self.after(following)
            if recent is not None:
                return recent, True
        return last, True


def _zone(name: str) -> tzinfo:
    if name in ("UTC", "Local"):
        return UTC
    import zoneinfo

    return zoneinfo.ZoneInfo(name)


def is_known_zone(name: str) -> bool:
    """Return whether a time zone exists."""
    import zoneinfo

    try:
        _zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
