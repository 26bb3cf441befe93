"""Tests for F{.ci/summary.py}: failed tests and totals from the output of tox."""

from __future__ import annotations

from io import StringIO
from typing import Any

from twisted.trial.reporter import TreeReporter
from twisted.trial.unittest import SynchronousTestCase, TestSuite

from ..checkout import load_script

script = load_script(".ci/summary.py")

PYTEST = """\
e2e: commands[0]> python -m pytest tests/e2e
=========================== short test summary info ============================
SKIPPED [1] tests/e2e/test_a.py:4: no browser
FAILED tests/e2e/test_a.py::ATests::test_b[a b] - AssertionError: 1 != 2
ERROR tests/e2e/test_a.py::test_c - ValueError: boom
================== 1 failed, 3 passed, 1 skipped, 1 error in 1.81s ==================
  e2e: FAIL code 1 (2.00=setup[0.01]+cmd[1.99] seconds)
"""


class Failing(SynchronousTestCase):
    """Tests that the tests below run; without the prefix, trial does not find them."""

    def equal(self) -> None:
        """Fail with a message of several lines."""
        self.assertEqual(1, 2, "first\nsecond: line")

    def broken(self) -> None:
        """Raise an exception."""
        raise KeyError("key")

    def caused(self) -> None:
        """Raise an exception with a cause."""
        try:
            self.broken()
        except KeyError as error:
            raise OSError(5, "message") from error

    def good(self) -> None:
        """Pass."""


def report(*methods: str) -> str:
    """Return what tox and trial print for some methods of L{Failing}."""
    stream = StringIO()
    reporter: Any = TreeReporter(stream)
    TestSuite([Failing(method) for method in methods]).run(reporter)
    reporter.done()
    return "py: commands[0]> python -m twisted.trial tests\n" + stream.getvalue()


class SummaryTests(SynchronousTestCase):
    """The lines that are left of an output."""

    maxDiff = None

    def summary(self, output: str) -> list[str]:
        """Return the summary of an output of tests."""
        return list(script.summarize(script.KEPT["checks.log"], output.splitlines()))

    def test_trial(self) -> None:
        """Each failed test of trial is a line with the environment, the id and the first line of its exception."""
        lines = self.summary(report("equal", "broken", "good", "caused"))
        name = f"{__name__}.Failing"
        self.assertEqual(
            [
                f"  py: [FAIL] {name}.equal: twisted.trial.unittest.FailTest: 1 != 2 : first",
                f"  py: [ERROR] {name}.broken: builtins.KeyError: 'key'",
                f"  py: [ERROR] {name}.caused: builtins.OSError: [Errno 5] message",
            ],
            lines[:3],
        )
        self.assertTrue(lines[3].startswith("Ran 4 tests"), lines)
        self.assertEqual("FAILED (failures=1, errors=2, successes=1)", lines[4])
        self.assertEqual(5, len(lines))

    def test_same_exception(self) -> None:
        """Tests that trial reports together, because they raise the same exception, are all listed."""
        lines = self.summary(report("broken", "broken"))
        failed = f"  py: [ERROR] {__name__}.Failing.broken: builtins.KeyError: 'key'"
        self.assertEqual([failed, failed], lines[:2])

    def test_passed(self) -> None:
        """A run without failures has its totals only."""
        lines = self.summary(report("good"))
        self.assertEqual("PASSED (successes=1)", lines[1])
        self.assertEqual(2, len(lines))

    def test_pytest(self) -> None:
        """Failures and errors of pytest's summary are listed with the environment; skipped tests are not."""
        _, _, _, failed, error, total, environment = PYTEST.splitlines()
        self.assertEqual([f"  e2e: {failed}", f"  e2e: {error}", total, environment], self.summary(PYTEST))

    def test_page(self) -> None:
        """Failed tests of the web page and errors of its types are listed."""
        typed = "kubetwist/ui/static/app.js(5,1): error TS2304: Cannot find name 'x'."
        output = f"{typed}\n\u2714 one (0.5ms)\n\u2716 two (0.5ms)\n"
        self.assertEqual([typed, "\u2716 two (0.5ms)"], self.summary(output))

    def test_long(self) -> None:
        """A line has at most 240 characters."""
        (line,) = self.summary("FAILED tests/e2e/test_a.py::test_b - ValueError: " + "x" * 1000)
        self.assertEqual(240, len(line))

    def test_unfinished(self) -> None:
        """A report that ends within a block is no error; its complete blocks are listed."""
        output = report("equal", "broken")
        output = output[: output.index("builtins.KeyError")]
        (line,) = self.summary(output)
        self.assertIn("Failing.equal", line)
