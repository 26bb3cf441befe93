"""A handler that writes as fast as its client reads."""

from __future__ import annotations

from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from kubetwist.http.request import KubeRequest

_PIECE = bytes(8192)


@implementer(IPushProducer)
class Endless:
    """
    A response that is written as long as the transport accepts it.

    @ivar written: The number of bytes so far.
    @ivar stopped: No more are written.
    """

    def __init__(self, request: KubeRequest, limit: int = 50_000_000) -> None:
        """
        @param limit: The number of bytes after which the response ends.
        """
        self.written = 0
        self.stopped = False
        self._request = request
        self._limit = limit
        self._paused = False
        request.notifyFinish().addErrback(lambda reason: self.stopProducing())
        request.registerProducer(self, True)
        self.resumeProducing()

    def resumeProducing(self) -> None:
        """Write until the transport pauses this producer."""
        self._paused = False
        while not self._paused and not self.stopped:
            self.written += len(_PIECE)
            self._request.write(_PIECE)
            if self.written >= self._limit and not self.stopped:
                self.stopped = True
                self._request.unregisterProducer()
                self._request.finish()

    def pauseProducing(self) -> None:
        """Stop writing for now."""
        self._paused = True

    def stopProducing(self) -> None:
        """Stop writing."""
        self.stopped = True
