"""
Ask clients of HTTP/2 with some probability to open another connection.

@see: kubernetes/apiserver, C{pkg/server/filters/goaway.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from random import random

from ..http.request import HTTP2, Handler, KubeRequest


def with_probabilistic_goaway(handler: Handler, chance: float, draw: Callable[[], float] = random) -> Handler:
    """
    Send GOAWAY with the response to some requests, so that clients move to other servers behind a load balancer.

    @param handler: The next handler.
    @param chance: The probability.
    @param draw: Returns a random number from 0 to 1.
    """

    def goaway(request: KubeRequest) -> None:
        if request.clientproto == HTTP2 and draw() < chance:
            request.connection.disable_keep_alive()
        handler(request)

    return goaway
