"""Tests for L{kubetwist.cel.standard.times}."""

from __future__ import annotations

from kubetwist.cel.values import Duration, Timestamp
from tests.cel.moments import SECOND
from tests.cel.support import CelTestCase


class TimeTests(CelTestCase):
    """Tests for L{kubetwist.cel.standard.times}."""

    def test_moments(self) -> None:
        """Accessors of timestamps accept a time zone."""
        when = "timestamp('2024-03-01T23:30:15.250Z')"
        self.assertValues(
            {
                f"{when}.getFullYear()": 2024,
                f"{when}.getMonth()": 2,
                f"{when}.getDate()": 1,
                f"{when}.getDayOfMonth()": 0,
                f"{when}.getDayOfYear()": 60,
                f"{when}.getDayOfWeek()": 5,
                f"{when}.getHours()": 23,
                f"{when}.getMinutes()": 30,
                f"{when}.getSeconds()": 15,
                f"{when}.getMilliseconds()": 250,
                f"{when}.getHours('+01:00')": 0,
                f"{when}.getDate('01:00')": 2,
                f"{when}.getDate('+25:00')": 3,
                f"{when}.getMilliseconds('Local')": 250,
                f"{when}.getMinutes('-00:45')": 45,
                f"{when}.getHours('America/New_York')": 18,
                f"{when} + duration('30m') > {when}": True,
                f"{when} - timestamp('2024-03-01T23:30:15Z')": Duration(SECOND // 4),
                "timestamp('1970-01-01T00:00:01Z')": Timestamp(SECOND),
            }
        )
        self.assertFails(
            {
                f"{when}.getHours('Mars/Base')": "unknown time zone Mars/Base",
                f"{when}.getHours('../etc')": "time: invalid location name",
                f"{when}.getHours('a:b')": 'strconv.Atoi: parsing "a": invalid syntax',
                f"{when}.getHours('1:9223372036854775808')": (
                    'strconv.Atoi: parsing "9223372036854775808": value out of range'
                ),
                f"{when}.getHours('9223372036854775807:0')": "timestamp overflow",
                "timestamp('9999-12-31T23:59:59Z') + duration('1s')": "timestamp overflow",
            }
        )

    def test_durations(self) -> None:
        """Accessors of durations round toward zero, and durations have a range."""
        self.assertValues(
            {
                "duration('1h30m').getHours()": 1,
                "duration('1h30m').getMinutes()": 90,
                "duration('-90s').getMinutes()": -1,
                "duration('1.5s').getMilliseconds()": 1500,
                "duration('1h') - duration('30m')": Duration(1800 * SECOND),
                "duration('1h') + timestamp(0) == timestamp(3600)": True,
            }
        )
        self.assertFails({"duration('2500000h') + duration('2500000h')": "integer overflow"})
