"""Tests of L{kubetwist.registry.generic.printers.ages}."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import AgeCell, cells, human_duration, row
from tests.registry.printertools import CREATED, NOW, made


class AgeTests(SynchronousTestCase):
    """Tests of texts of ages."""

    def test_units(self) -> None:
        """Longer durations have larger units; at most two units are used."""
        minute, hour, day = 60, 3600, 86400
        for seconds, words in {
            -5: "<invalid>",
            -1.5: "0s",
            -0.5: "0s",
            0: "0s",
            119.9: "119s",
            2 * minute: "2m",
            3 * minute + 20: "3m20s",
            10 * minute + 20: "10m",
            179 * minute: "179m",
            3 * hour: "3h",
            7 * hour + 5 * minute: "7h5m",
            47 * hour: "47h",
            2 * day: "2d",
            7 * day + 3 * hour: "7d3h",
            8 * day + 3 * hour: "8d",
            729 * day: "729d",
            730 * day: "2y",
            740 * day: "2y10d",
            8 * 365 * day + 9 * day: "8y",
        }.items():
            self.assertEqual(human_duration(seconds), words, str(seconds))

    @settings(max_examples=100)
    @given(seconds=st.floats(min_value=0, max_value=1e10))
    def test_whole_seconds(self, seconds: float) -> None:
        """Fractions of seconds are not shown."""
        self.assertEqual(human_duration(seconds), human_duration(float(int(seconds))))

    def test_row_is_kept(self) -> None:
        """A row is the same at any time; ages in it are formatted when it is shown."""
        obj = made({"data": {"a": "1"}})
        self.assertEqual(row("", "ConfigMap", obj), ("x", 1, AgeCell(CREATED)))
        self.assertEqual(cells("", "ConfigMap", obj, NOW), ["x", 1, "3m"])
        self.assertEqual(cells("", "ConfigMap", obj, NOW + 86400), ["x", 1, "24h"])

    def test_unknown_age(self) -> None:
        """An object without a time has an unknown age."""
        for stamp in (None, "", "yesterday"):
            self.assertEqual(cells("", "ConfigMap", made(creationTimestamp=stamp), NOW), ["x", 0, "<unknown>"])
