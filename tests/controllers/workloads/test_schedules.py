"""Tests for L{kubetwist.controllers.workloads.schedules}."""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.workloads.schedules import CronSchedule
from kubetwist.registry.batch.schedule import CronError
from tests.controllers.harness import START


def at(text: str) -> float:
    """Return a time in UTC, with a precision of minutes."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp()


class CronScheduleTests(SynchronousTestCase):
    """Times of schedules."""

    def check(self, schedule: str, since: str, *expected: str, zone: str | None = None) -> None:
        """Compare the first times after a moment."""
        times, moment, found = CronSchedule(schedule, zone), at(since), []
        for _ in expected:
            following = times.after(moment)
            assert following is not None
            moment = following
            found.append(datetime.fromtimestamp(following, UTC).strftime("%Y-%m-%d %H:%M"))
        self.assertEqual(found, list(expected), schedule)

    def test_fields(self) -> None:
        """Minutes, hours, days, months and days of the week are respected, with ranges, steps, lists and names."""
        since = "2026-01-01 00:00"
        self.check("* * * * *", since, "2026-01-01 00:01", "2026-01-01 00:02")
        self.check("*/20 * * * *", since, "2026-01-01 00:20", "2026-01-01 00:40", "2026-01-01 01:00")
        self.check("5/25 3,4 * * *", since, "2026-01-01 03:05", "2026-01-01 03:30", "2026-01-01 03:55")
        self.check("0 0 31 * *", since, "2026-01-31 00:00", "2026-03-31 00:00")
        self.check("0 12 * FEB-mar *", since, "2026-02-01 12:00")
        self.check("0 0 * * mon-Tue", since, "2026-01-05 00:00", "2026-01-06 00:00", "2026-01-12 00:00")
        self.check("0 0 29 2 *", since, "2028-02-29 00:00")

    def test_days(self) -> None:
        """Days of the month and of the week are alternatives, unless one of them is C{*}."""
        since = "2026-01-01 00:00"
        self.check("0 0 13 * fri", since, "2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00")
        self.check("0 0 * * 0", since, "2026-01-04 00:00")

    def test_macros(self) -> None:
        """Macros are replaced by their schedules."""
        since = "2026-01-01 00:30"
        self.check("@hourly", since, "2026-01-01 01:00")
        self.check("@daily", since, "2026-01-02 00:00")
        self.check("@weekly", since, "2026-01-04 00:00")
        self.check("@monthly", since, "2026-02-01 00:00")
        self.check("@yearly", since, "2027-01-01 00:00")
        self.check("@every 1h30m", since, "2026-01-01 02:00", "2026-01-01 03:30")

    def test_never(self) -> None:
        """A date that does not exist has no time."""
        self.assertIsNone(CronSchedule("0 0 31 2 *", None).after(START))
        self.assertEqual(CronSchedule("0 0 31 2 *", None).most_recent(START - 1e9, START), (None, False))

    def test_zones(self) -> None:
        """Times are in the time zone. An hour that is skipped in spring has no time."""
        self.check("0 9 * * *", "2026-01-01 00:00", "2026-01-01 08:00", zone="Europe/Berlin")
        self.check("30 2 * * *", "2026-03-28 12:00", "2026-03-30 00:30", zone="Europe/Berlin")
        self.check("30 0 * * *", "2026-01-01 00:00", "2026-01-01 19:00", zone="Asia/Kolkata")
        self.check("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01 12:00", "2026-01-02 00:00")

    def test_newest(self) -> None:
        """The last missed time is found, also after many missed times."""
        minutely = CronSchedule("* * * * *", None)
        now = at("2026-06-01 10:30") + 12
        self.assertEqual(minutely.most_recent(now - 300, now), (at("2026-06-01 10:30"), False))
        self.assertEqual(minutely.most_recent(now - 1e8, now), (at("2026-06-01 10:30"), True))
        self.assertEqual(minutely.most_recent(now - 10, now), (None, False))
        self.assertEqual(CronSchedule("@every 10s", None).most_recent(100.0, 135.0), (130.0, False))
        self.assertEqual(CronSchedule("@every 10s", None).next_after(100.0, 135.0), 140.0)

    def test_invalid_schedule(self) -> None:
        """An invalid schedule is rejected."""
        for text, why in (
            ("x", 'time: invalid duration "x"'),
            ("90m/x", 'time: unknown unit "m/x" in duration "90m/x"'),
            ("5", 'time: missing unit in duration "5"'),
        ):
            error = self.assertRaises(ValueError, CronSchedule, f"@every {text}", None)
            self.assertEqual(str(error), f"failed to parse duration @every {text}: {why}")
        for text in ("", "* * * *", "60 * * * *", "@never", "@every x", "*/0 * * * *", "5-1 * * * *"):
            self.assertRaises(CronError, CronSchedule, text, None)
