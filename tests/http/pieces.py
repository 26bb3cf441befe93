"""Base of tests with error responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from tests.http.harness import Client, make_site


class ErrorTestCase(SynchronousTestCase):
    """Base of tests that combine several test cases."""

    def client(self, handle: Callable[[KubeRequest], Any]) -> Client:
        """Return a connection to a site with one handler."""
        return Client(make_site(handle))
