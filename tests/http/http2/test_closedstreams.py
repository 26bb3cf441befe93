"""Tests of L{kubetwist.http.http2.closedstreams}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.http2.closedstreams import ClosedStreams
from kubetwist.http.http2.frames import PROTOCOL_ERROR, STREAM_CLOSED, Http2ConnectionError, Http2StreamError


class ClosedStreamTests(SynchronousTestCase):
    """L{ClosedStreams}."""

    def test_idle(self) -> None:
        """Streams after the last one are idle, and all streams of the server."""
        closed = ClosedStreams(10)
        closed.opened(5)
        self.assertEqual([one for one in range(1, 9) if closed.is_idle(one)], [2, 4, 6, 7, 8])

    def test_ended(self) -> None:
        """A frame on an ended stream is a connection error, another one on a skipped stream."""
        closed = ClosedStreams(10)
        closed.opened(1)
        closed.opened(7)
        closed.opened(9)
        codes = [self.assertRaises(Http2ConnectionError, closed.check, one, "DATA").code for one in (1, 3, 5, 7)]
        self.assertEqual(codes, [STREAM_CLOSED, PROTOCOL_ERROR, PROTOCOL_ERROR, STREAM_CLOSED])

    def test_reset(self) -> None:
        """A frame is ignored after a reset by the server, and a stream error after one by the client."""
        closed = ClosedStreams(10)
        closed.opened(3)
        closed.was_reset(1, by_client=False)
        closed.was_reset(3, by_client=True)
        closed.was_reset(3, by_client=False)
        closed.check(1, "DATA")
        error = self.assertRaises(Http2StreamError, closed.check, 3, "DATA")
        self.assertEqual((error.stream_id, error.code), (3, STREAM_CLOSED))

    def test_limit(self) -> None:
        """The oldest reset streams are forgotten."""
        closed = ClosedStreams(2)
        closed.opened(5)
        for one in (1, 3, 5):
            closed.was_reset(one, by_client=False)
        closed.check(3, "DATA")
        self.assertRaises(Http2ConnectionError, closed.check, 1, "DATA")
