"""Tests of L{kubetwist.filters.requestinfo}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.featuregates import FeatureGates

from ..http.harness import Client, filtered_site


class FilterTests(SynchronousTestCase):
    """L{with_request_info}."""

    def test_selectors(self) -> None:
        """Authorizers see the selectors of a list if AuthorizeWithSelectors is enabled, as it is since 1.32."""
        asked: list[AuthorizerAttributes] = []

        class Allow:
            name = "Allow"

            def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
                asked.append(attributes)
                return Verdict(Decision.ALLOW)

        for features in (FeatureGates((1, 31)), FeatureGates((1, 32))):
            site = filtered_site(authorizer=Allow(), features=features)
            Client(site).request("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Da&labelSelector=b")
        self.assertEqual([len(attributes.field_terms) for attributes in asked], [0, 1])
        self.assertEqual([len(attributes.label_terms) for attributes in asked], [0, 1])

    def test_incomplete_path(self) -> None:
        """An incomplete path is answered in plain text before authentication."""

        class NoUser:
            def authenticate(self, request: object) -> None:
                raise AssertionError("asked")

        answer = Client(filtered_site(authenticator=NoUser())).request("GET", "/api/v1/watch?a=<b>")
        self.assertEqual(answer.code, 500)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        self.assertEqual(
            answer.body,
            b'Internal Server Error: "/api/v1/watch?a=&lt;b&gt;": failed to create RequestInfo:'
            b" unable to determine kind and namespace from url, /api/v1/watch?a=&lt;b&gt;\n",
        )
        self.assertIsNotNone(answer.header("audit-id"))
