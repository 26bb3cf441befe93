"""Tests for L{kubetwist.filters.cachecontrol}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from tests.filters.answers import Says
from tests.http.harness import Allow, Client, filtered_site


class CacheControlTests(SynchronousTestCase):
    """Tests for L{kubetwist.filters.cachecontrol}."""

    def test_private(self) -> None:
        """Answers say that they are for nobody else, errors too."""
        for authorizer in (Allow(), Says(Verdict(Decision.DENY))):
            answer = Client(filtered_site(authorizer=authorizer)).request("GET", "/")
            self.assertEqual(answer.headers["cache-control"], ["no-cache, private"])
