"""Tests of L{kubetwist.registry.core.pod.logoptions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.pod.logoptions import log_options


class LogOptionsTests(SynchronousTestCase):
    """Tests of L{kubetwist.registry.core.pod.logoptions}."""

    def refusal(self, split_streams: bool = False, **query: str) -> APIStatusError:
        """Return the error of a query."""
        with self.assertRaises(APIStatusError) as caught:
            log_options({name: [value] for name, value in query.items()}).check("p", split_streams=split_streams)
        return caught.exception

    def test_limits(self) -> None:
        """Limits are not negative; only one start time is accepted."""
        error = self.refusal(tailLines="-1", sinceSeconds="0", limitBytes="0")
        fields = [cause["field"] for cause in error.details["causes"]]  # type: ignore[index]
        self.assertEqual(fields, ["tailLines", "limitBytes", "sinceSeconds"])
        error = self.refusal(sinceSeconds="1", sinceTime="2026-01-02T03:04:05Z")
        self.assertEqual(error.details["causes"][0]["field"], "[]")  # type: ignore[index]

    def test_malformed(self) -> None:
        """Malformed numbers and times are rejected with the messages of Go."""
        for query, message in (
            ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
            ({"tailLines": "1_0"}, 'strconv.ParseInt: parsing "1_0": invalid syntax'),
            ({"limitBytes": "9" * 30}, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
            ({"sinceTime": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ):
            error = self.refusal(**query)
            self.assertEqual((error.code, error.message), (400, message))

    def test_streams(self) -> None:
        """An output stream can be requested if the feature is enabled, but not with tailLines."""
        self.assertIn("stream: Forbidden: may not be specified", self.refusal(stream="All").message)
        self.assertIn('"All", "Stderr", "Stdout"', self.refusal(True, stream="Stdin").message)
        self.assertIn("mutually exclusive", self.refusal(True, stream="Stdout", tailLines="1").message)
        options = log_options({"stream": ["Stdout"]})
        options.check("p", split_streams=True)
        self.assertEqual(options.kubelet_query(split_streams=True), "stream=Stdout")
        self.assertEqual(log_options({}).kubelet_query(split_streams=True), "stream=All")

    def test_zero_values(self) -> None:
        """Zero lines are accepted, and an empty time is the zero time."""
        options = log_options({"tailLines": ["0"], "sinceTime": [""]})
        options.check("p")
        self.assertEqual(options.kubelet_query(), "sinceTime=0001-01-01T00%3A00%3A00Z&tailLines=0")
