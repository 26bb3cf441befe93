"""Tests for F{benchmarks/soakreport.py}: growth, CSV files and the plot."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis.strategies import floats

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/soakreport.py")


def sample(seconds: float, rss: float = 100.0, **values: object) -> object:
    """Return a sample of an interval of ten seconds."""
    return script.Sample(seconds, 2000, 0, "", 4.0, 20.0, 35.5, 8.0, 1.0, 700, 0, 3, rss, 90, 5, 30.0, 12.0)._replace(
        **values
    )


class SlopeTests(SynchronousTestCase):
    """The growth of a column."""

    @given(floats(-1000, 1000), floats(-1000, 1000))
    def test_straight(self, start: float, per_hour: float) -> None:
        """The slope of points on a line is the slope of the line, and its standard error is 0."""
        found = script.slope([(x, start + per_hour * x / 3600) for x in (0.0, 100.0, 350.0, 3600.0)])
        self.assertAlmostEqual(found.per_hour, per_hour, 6)
        self.assertAlmostEqual(found.error, 0.0, 6)

    def test_noise(self) -> None:
        """The standard error of points beside the line follows the usual formula."""
        found = script.slope([(0, 1.0), (1, 0.0), (2, 1.0), (3, 0.0)])
        self.assertAlmostEqual(found.per_hour / 3600, -0.2)
        self.assertAlmostEqual(found.error / 3600, (0.8 / 2 / 5) ** 0.5)

    def test_too_few(self) -> None:
        """There is no slope of two points, or of points at the same time."""
        self.assertIsNone(script.slope([(0, 1.0), (1, 2.0)]))
        self.assertIsNone(script.slope([(1, 1.0)] * 3))

    def test_warm_up(self) -> None:
        """The first minutes are excluded."""
        samples = [sample(60.0 * minute, rss=100.0 if minute >= 10 else 10.0 * minute) for minute in range(30)]
        self.assertAlmostEqual(script.growth(samples, "rss", 10).per_hour, 0.0)
        self.assertGreater(script.growth(samples, "rss", 0).per_hour, 50)


class FileTests(SynchronousTestCase):
    """CSV files."""

    def test_round_trip(self) -> None:
        """The samples that are written are the ones that are read."""
        samples = [sample(10.0), sample(20.0, codes="503:2 connection:1", errors=3)]
        path = Path(self.mktemp())
        script.write_csv(path, samples)
        self.assertEqual(script.read_csv(path), samples)

    def test_wrong_file(self) -> None:
        """Another file, and an incomplete line, are reported with the path."""
        path = Path(self.mktemp())
        path.write_text("a,b\n1,2\n")
        with self.assertRaisesRegex(ValueError, "the first line is not seconds,"):
            script.read_csv(path)
        script.write_csv(path, [sample(10.0)])
        with path.open("a") as file:
            file.write("20.0,1\n")
        with self.assertRaisesRegex(ValueError, ":3: 17 columns are required"):
            script.read_csv(path)


class ReportTests(SynchronousTestCase):
    """Summary and plot."""

    def test_summary(self) -> None:
        """The summary has the duration, the errors and the growth of memory."""
        lines = script.summary([sample(60.0 * n, rss=100 + n, errors=n % 2) for n in range(1, 31)], 10)
        self.assertEqual(lines[0], "duration: 30 min, 60000 requests (33/s), 15 errors")
        self.assertIn(
            "resident memory: 101 MB first, 130 MB last, 130 MB max; +60.0 MB/h (standard error 0.0) after 10 min",
            lines,
        )
        self.assertIn("p99 of an interval: median 20.0 ms, p95 20.0 ms, max 20.0 ms", lines)

    def test_summary_of_nothing(self) -> None:
        """A run that ended before its first sample has a summary."""
        self.assertEqual(script.summary([]), ["no samples"])

    def test_plot(self) -> None:
        """The plot is well-formed, has a line for each column, and all points are within it."""
        samples = [sample(10.0 * n, rss=100 + n, longest=10.0**n) for n in range(1, 5)]
        root = ElementTree.fromstring(script.plot(samples, "a < b"))
        names = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.findtext(f"{names}title"), "a < b")
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        lines = root.findall(f"{names}polyline")
        self.assertEqual(len(lines), 9)
        for line in lines:
            points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
            self.assertEqual(len(points), 4)
            for x, y in points:
                self.assertTrue(0 <= x <= width and 0 <= y <= height, (x, y))
