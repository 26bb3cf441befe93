"""Tests of L{kubetwist.filters.cachecontrol}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from tests.filters.answers import FixedResult
from tests.http.harness import Allow, Client, filtered_site


class CacheControlTests(SynchronousTestCase):
    """C{with_cache_control}."""

    def test_private(self) -> None:
        """Responses and errors must not be stored by shared caches."""
        for authorizer in (Allow(), FixedResult(Verdict(Decision.DENY))):
            answer = Client(filtered_site(authorizer=authorizer)).request("GET", "/")
            self.assertEqual(answer.headers["cache-control"], ["no-cache, private"])
