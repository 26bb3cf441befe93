"""Answers in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from tests.http.harness import Client, make_site


class ErrorTestCase(SynchronousTestCase):
    """A test with the tools of several test cases."""

    def client(self, handle: Callable[[KubeRequest], Any]) -> Client:
        """A connection to a handler."""
        return Client(make_site(handle))
