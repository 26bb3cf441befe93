"""Tests for L{kubetwist.api.times} and L{kubetwist.api.go.durations}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import times
from kubetwist.api.times import format_time, now, now_micro, parse_micro_time, parse_time, seconds_since_epoch

moments = st.datetimes(
    datetime(2, 1, 1),
    datetime(9998, 12, 31),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


class TimeTests(SynchronousTestCase):
    """Tests for times."""

    def test_canonical(self) -> None:
        """Times are stored in UTC and whole seconds; the zero time is stored as null."""
        for text, stored in {
            "2020-01-02T03:04:05Z": "2020-01-02T03:04:05Z",
            "2020-01-02T03:04:05.999Z": "2020-01-02T03:04:05Z",
            "2020-01-02T03:04:05+02:00": "2020-01-02T01:04:05Z",
            "2020-01-02T3:04:05Z": "2020-01-02T03:04:05Z",
            "2020-02-29T23:59:59-00:01": "2020-03-01T00:00:59Z",
            "0001-01-01T00:00:00Z": None,
        }.items():
            self.assertEqual(parse_time(text), stored)
        self.assertEqual(parse_micro_time("2020-01-02T03:04:05.120000+01:00"), "2020-01-02T02:04:05.120000Z")

    def test_temporary_clock(self) -> None:
        """A temporary clock is replaced by the previous one at the end of its block, also after an exception."""
        with times.temporary_clock(lambda: 1.0):
            with self.assertRaises(KeyError), times.temporary_clock(lambda: 2.0):
                self.assertEqual(times.posix_now(), 2.0)
                raise KeyError
            self.assertEqual(times.posix_now(), 1.0)
        self.assertGreater(times.posix_now(), 2.0)

    def test_errors(self) -> None:
        """An invalid time is rejected with Go's message."""
        layout = "2006-01-02T15:04:05Z07:00"
        for text, message in {
            "": f'parsing time "" as "{layout}": cannot parse "" as "2006"',
            'é"\n': f'parsing time "\\xc3\\xa9\\"\\x0a" as "{layout}": cannot parse "\\xc3\\xa9\\"\\x0a" as "2006"',
            "yesterday": f'parsing time "yesterday" as "{layout}": cannot parse "yesterday" as "2006"',
            "2020-01-02": f'parsing time "2020-01-02" as "{layout}": cannot parse "" as "T"',
            "2020-01-02 03:04:05Z": f'parsing time "2020-01-02 03:04:05Z" as "{layout}": '
            'cannot parse " 03:04:05Z" as "T"',
            "2020-01-02T03:04:05": f'parsing time "2020-01-02T03:04:05" as "{layout}": cannot parse "" as "Z07:00"',
            "2020-02-30T00:00:00Z": 'parsing time "2020-02-30T00:00:00Z": day out of range',
            "2021-02-29T00:00:00Z": 'parsing time "2021-02-29T00:00:00Z": day out of range',
            "2020-13-01T00:00:00Z": 'parsing time "2020-13-01T00:00:00Z": month out of range',
            "2020-01-01T24:00:00Z": 'parsing time "2020-01-01T24:00:00Z": hour out of range',
            "2020-01-01T00:00:00Zulu": 'parsing time "2020-01-01T00:00:00Zulu": extra text: "ulu"',
            "9999-12-31T23:59:59-01:00": 'parsing time "9999-12-31T23:59:59-01:00": year out of range',
        }.items():
            self.assertEqual(str(self.assertRaises(ValueError, parse_time, text)), message)

    def test_micro_time_needs_its_fraction(self) -> None:
        """A MicroTime has exactly six digits after the point."""
        layout = "2006-01-02T15:04:05.000000Z07:00"
        for text, rest, part in (
            ("2020-01-02T03:04:05Z", "Z", ".000000"),
            ("2020-01-02T03:04:05.12Z", ".12Z", ".000000"),
            ("2020-01-02T03:04:05.1234567Z", "7Z", "Z07:00"),
        ):
            error = self.assertRaises(ValueError, parse_micro_time, text)
            self.assertEqual(str(error), f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{part}"')

    def test_now(self) -> None:
        """The current time is in its stored form."""
        moment = now()
        self.assertEqual(parse_time(moment), moment)
        moment = now_micro()
        self.assertEqual(parse_micro_time(moment), moment)
        self.assertEqual(format_time(0), "1970-01-01T00:00:00Z")

    @given(moments)
    def test_any_moment(self, moment: datetime) -> None:
        """Every moment is parsed as by datetime, and its stored form is stable."""
        stored = parse_micro_time(moment.isoformat(timespec="microseconds"))
        self.assertEqual(stored, moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0"))
        assert stored is not None
        self.assertEqual(parse_micro_time(stored), stored)
        seconds = parse_time(moment.isoformat())
        assert seconds is not None
        self.assertEqual(seconds, stored[:19] + "Z")
        self.assertEqual(format_time(seconds_since_epoch(seconds))[-15:], seconds[-15:])

    @given(st.text(st.sampled_from("0123456789-:TZ.+")))
    def test_any_text(self, text: str) -> None:
        """Any text is a time, or is rejected with a message."""
        for parse in (parse_time, parse_micro_time):
            try:
                parse(text)
            except ValueError as error:
                self.assertTrue(str(error).startswith("parsing time "))
