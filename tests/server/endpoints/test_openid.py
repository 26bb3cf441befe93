"""Tests of L{kubetwist.server.endpoints.openid}."""

from __future__ import annotations

import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.registry.core.serviceaccount.tokenkeys import load_token_keys
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.server.endpoints.openid import CONFIGURATION, KEYS, BadIssuer, check_issuer, serve_documents
from tests.http.harness import Allow, Answer, Client, Everyone, make_site
from tests.tokenkeys import private_pem

(KEY,) = load_token_keys(private_pem(rsa.generate_private_key(65537, 2048)))


class DocumentTests(SynchronousTestCase):
    """L{serve_documents}."""

    def ask(
        self, path: str, method: str = "GET", issuer: str = "https://here", uri: str = "", **headers: str
    ) -> Answer:
        """Send a request to a server with one key."""
        mux = DelegatingMux("test", NotFound())
        options = {"service-account-issuer": (issuer, "https://before"), "service-account-jwks-uri": uri}
        serve_documents(mux, options, [KEY], lambda: "10.0.0.1:6443")
        clock = Clock()
        handler = build_handler_chain(traverse(mux), reactor=clock, authenticator=Everyone(), authorizer=Allow())
        return Client(make_site(handler, clock)).request(method, path, **headers)

    def document(self, answer: Answer) -> Any:
        """Return the document of a cacheable response."""
        self.assertEqual(answer.code, 200)
        self.assertEqual(answer.headers["cache-control"], ["public, max-age=3600"])
        return json.loads(answer.body)

    def test_configuration(self) -> None:
        """The configuration contains the issuer and the URL of its keys."""
        answer = self.ask(CONFIGURATION)
        self.assertEqual(answer.header("content-type"), "application/json")
        self.assertEqual(
            self.document(answer),
            {
                "issuer": "https://here",
                "jwks_uri": "https://10.0.0.1:6443/openid/v1/jwks",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            },
        )
        elsewhere = self.ask(CONFIGURATION, uri="https://elsewhere/keys")
        self.assertEqual(self.document(elsewhere)["jwks_uri"], "https://elsewhere/keys")

    def test_keys(self) -> None:
        """The key set contains the keys."""
        answer = self.ask(KEYS, Accept="*/*")
        self.assertEqual(answer.header("content-type"), "application/jwk-set+json")
        self.assertEqual(self.document(answer), {"keys": [KEY.as_jwk()]})

    def test_errors(self) -> None:
        """Each document has one media type, is read-only, and has no subpaths."""
        answer = self.ask(KEYS, Accept="application/json")
        self.assertEqual(answer.code, 406)
        message = "406: Not Acceptable\n\nAvailable representations: application/jwk-set+json"
        self.assertEqual(json.loads(answer.body)["message"], message)
        self.assertEqual(self.ask(KEYS, "POST").code, 405)
        for path in (f"{KEYS}/more", "/openid/v1", "/.well-known/nothing"):
            self.assertEqual(self.ask(path).code, 404, path)

    def test_other_issuers(self) -> None:
        """Without an https issuer there are no documents."""
        for issuer in ("http://here", "here", "https://here?x", "https://here#x", ""):
            self.assertRaises(BadIssuer, check_issuer, issuer, "")
            self.assertEqual(self.ask(KEYS, issuer=issuer).code, 404)
        self.assertRaises(BadIssuer, check_issuer, "https://here", "http://elsewhere")
