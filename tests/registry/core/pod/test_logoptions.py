"""Tests for L{kubetwist.registry.core.pod.logoptions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.pod.logoptions import log_options


class LogOptionsTests(SynchronousTestCase):
    """Tests for L{kubetwist.registry.core.pod.logoptions}."""

    def refusal(self, split_streams: bool = False, **query: str) -> APIStatusError:
        """Why a query is refused."""
        with self.assertRaises(APIStatusError) as caught:
            log_options({name: [value] for name, value in query.items()}).check("p", split_streams=split_streams)
        return caught.exception

    def test_limits(self) -> None:
        """Limits are numbers that limit; a time to begin is given in one way."""
        error = self.refusal(tailLines="-1", sinceSeconds="0", limitBytes="0")
        fields = [cause["field"] for cause in error.details["causes"]]  # type: ignore[index]
        self.assertEqual(fields, ["tailLines", "limitBytes", "sinceSeconds"])
        error = self.refusal(sinceSeconds="1", sinceTime="2026-01-02T03:04:05Z")
        self.assertEqual(error.details["causes"][0]["field"], "[]")  # type: ignore[index]

    def test_what_is_no_number(self) -> None:
        """Numbers and times are read as Go reads them, and its words tell what is wrong."""
        for query, told in (
            ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
            ({"tailLines": "1_0"}, 'strconv.ParseInt: parsing "1_0": invalid syntax'),
            ({"limitBytes": "9" * 30}, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
            ({"sinceTime": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ):
            error = self.refusal(**query)
            self.assertEqual((error.code, error.message), (400, told))

    def test_streams(self) -> None:
        """One of the output streams can be asked for where the feature is on, and not together with tailLines."""
        self.assertIn("stream: Forbidden: may not be specified", self.refusal(stream="All").message)
        self.assertIn('"All", "Stderr", "Stdout"', self.refusal(True, stream="Stdin").message)
        self.assertIn("mutually exclusive", self.refusal(True, stream="Stdout", tailLines="1").message)
        options = log_options({"stream": ["Stdout"]})
        options.check("p", split_streams=True)
        self.assertEqual(options.kubelet_query(split_streams=True), "stream=Stdout")
        self.assertEqual(log_options({}).kubelet_query(split_streams=True), "stream=All")

    def test_nothing(self) -> None:
        """Zero lines are fine, and a time without a value is the beginning of time."""
        options = log_options({"tailLines": ["0"], "sinceTime": [""]})
        options.check("p")
        self.assertEqual(options.kubelet_query(), "sinceTime=0001-01-01T00%3A00%3A00Z&tailLines=0")
