"""Tests for L{kubetwist.registry.batch.schedule}."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.batch.schedule import CronError, check_schedule


class ScheduleTests(SynchronousTestCase):
    """Tests for L{check_schedule}."""

    def test_valid(self) -> None:
        """Ranges, steps, lists, names and descriptors are valid."""
        for schedule in ("* * * * *", "0-30/5 1,2 ? jan-mar SUN", "@daily", "@every 1h30m", "5/10 * * * *"):
            check_schedule(schedule)

    def test_invalid(self) -> None:
        """Every error has a separate message."""
        for schedule, text in (
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
            ("@never", "unrecognized descriptor: @never"),
        ):
            self.assertEqual(str(self.assertRaises(CronError, check_schedule, schedule)), text)

    @settings(max_examples=100, deadline=None)
    @given(schedule=st.text(alphabet="0123456789*/-,? @janmon", max_size=20))
    def test_any_text(self, schedule: str) -> None:
        """Any text is a schedule, or is rejected with a message."""
        try:
            check_schedule(schedule)
        except CronError as error:
            self.assertTrue(str(error))
