"""Tests for L{kubetwist.authentication._jwks}."""

from __future__ import annotations

import json
from hashlib import sha256

from twisted.internet.defer import Deferred

from kubetwist.authentication import _jwks
from kubetwist.authentication.configuration import ClaimOrExpression, JWTAuthenticatorConfig
from kubetwist.authentication.configuration import Issuer as IssuerSettings
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.metrics.registry import Histogram
from tests.authentication.oidccase import URL, Request, TokenCase
from tests.oidcissuer import KEYS, Issuer


class KeyTests(TokenCase):
    """Tests of discovery, refresh and lookup of keys."""

    def test_discovery(self) -> None:
        """Keys are discovered below the issuer URL, or at the configured discovery URL."""
        self.assertEqual(self.issuer.asked, ["/.well-known/openid-configuration", "/keys"])
        self.issuer.pages["/elsewhere"] = 200, json.dumps({"issuer": URL, "jwks_uri": f"{URL}/keys"}).encode()
        self.issuer.asked.clear()
        settings = IssuerSettings(URL, ("me",), f"{URL}/elsewhere", b"PEM")
        self.tokens.configure([JWTAuthenticatorConfig(settings, ClaimOrExpression("sub"))])
        self.assertEqual(self.issuer.asked, ["/elsewhere", "/keys"])
        self.assertEqual([settings.ca for settings, _ in self.network.calls], [b"PEM", b"PEM"])

    def test_query(self) -> None:
        """The URL of the keys can have a query."""
        self.tokens.configure([])
        self.tokens.configure([self.configuration()])
        self.assertEqual(self.network.calls[1][1], "v=1")

    def test_later(self) -> None:
        """Discovery is retried every ten seconds; until it succeeds tokens are rejected."""
        self.network.issuers.clear()
        self.tokens.configure([self.configuration("https://late.example.com")])
        late = Issuer("https://late.example.com")
        self.assertEqual(self.error_text(late.token()), "oidc: authenticator not initialized")
        self.clock.advance(10)
        self.network.issuers["late.example.com"] = late
        self.assertEqual(self.error_text(late.token()), "oidc: authenticator not initialized")
        self.clock.advance(10)
        self.assertIsNotNone(self.user(late.token()))
        calls = len(self.network.calls)
        self.clock.pump([10] * 5)
        self.assertEqual(len(self.network.calls), calls)

    def test_new_key(self) -> None:
        """A token with an unknown key starts a fetch; concurrent requests share it."""
        self.clock.advance(10)
        self.issuer.keys = {"two": KEYS["two"]}
        self.network.held = Deferred()
        waiting = [self.tokens.authenticate(Request(self.issuer.token("two", jti=str(n)))) for n in range(3)]
        for one in waiting:
            self.assertNoResult(one)
        self.assertEqual(len(self.network.calls), 1)
        self.network.held.callback(None)
        for one in waiting:
            self.assertEqual(self.successResultOf(one).name, "oidc:alice")

    def test_old_key(self) -> None:
        """After a key was removed its signatures are rejected, also for cached tokens."""
        token = self.issuer.token()
        self.assertIsNotNone(self.user(token))
        self.clock.advance(10)
        self.issuer.keys = {"two": KEYS["two"]}
        self.assertIsNotNone(self.user(self.issuer.token("two")))
        self.clock.advance(10)
        self.assertIn("failed to verify", self.error_text(token))

    def test_rate_limit(self) -> None:
        """Tokens with unknown keys start at most one fetch in ten seconds."""
        self.clock.advance(10)
        for number in range(50):
            self.assertIn("failed to verify", self.error_text(self.issuer.token(headers={"kid": f"x{number}"})))
        self.assertEqual(len(self.network.calls), 1)
        self.clock.advance(10)
        self.error_text(self.issuer.token(headers={"kid": "x"}))
        self.assertEqual(len(self.network.calls), 2)

    def test_failed_fetch(self) -> None:
        """Keys are kept if a fetch fails."""
        self.clock.advance(10)
        for code, body in ((500, b"{}"), (200, b"garbage"), (200, b"[]"), (200, b"{}"), (200, b'{"keys": {}}')):
            self.issuer.pages["/keys"] = code, body
            self.assertIn("failed to verify", self.error_text(self.issuer.token(headers={"kid": "x"})))
            self.assertIsNotNone(self.user(self.issuer.token()))
            self.clock.advance(10)

    def test_metrics(self) -> None:
        """
        Durations are observed by issuer and result for tokens that are not cached, and the times of fetches are
        recorded.
        """
        digest = f"sha256:{sha256(self.issuer.url.encode()).hexdigest()}"

        def reported(name: str) -> dict[tuple[str, ...], float]:
            (reading,) = [one for one in self.tokens.collect() if one.name.endswith(name)]
            return {key: one.count if isinstance(one, Histogram) else one for key, one in reading.values}

        keys = "jwks_fetch_last_timestamp_seconds"
        self.assertEqual(reported(keys).keys(), {("success", digest, "")})
        token = self.issuer.token()
        for _ in range(3):
            self.user(token)
        self.clock.advance(10)
        self.issuer.pages["/keys"] = 500, b"{}"
        self.error_text(self.issuer.token(headers={"kid": "x"}))
        self.error_text(self.issuer.token("two", headers={"kid": "one"}))
        self.assertEqual(reported("latency_seconds"), {("success", digest): 1, ("failure", digest): 2})
        self.assertEqual(reported(keys).keys(), {("success", digest, ""), ("failure", digest, "")})
        self.tokens.configure([])
        self.assertEqual((reported("latency_seconds"), reported(keys)), ({}, {}))

    def test_refresh(self) -> None:
        """Old keys are refreshed in the background."""
        self.clock.advance(_jwks.REFRESH_INTERVAL + 1)
        self.network.held = Deferred()
        self.assertIsNotNone(self.user(self.issuer.token()))
        self.assertEqual(len(self.network.calls), 1)
        self.network.held.callback(None)

    def test_wrong_issuer(self) -> None:
        """A discovery document of another issuer is rejected, and so are keys without https."""
        self.issuer.issuer_url = "https://evil.example.com"
        self.tokens.configure([])
        self.tokens.configure([self.configuration()])
        self.assertEqual(self.error_text(self.issuer.token()), "oidc: authenticator not initialized")
        for document in ({}, {"issuer": URL}, {"issuer": URL, "jwks_uri": "http://x/keys"}):
            self.assertRaises(AuthenticationFailed, _jwks.jwks_uri, document, URL)

    def test_key_set(self) -> None:
        """Keys that cannot verify tokens are skipped, and the number of keys is limited."""
        valid = self.issuer.jwks()[0]
        secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
        skipped = [secret, {**valid, "use": "enc"}, {**valid, "n": "AQAB"}, {**valid, "n": 5}, {"kty": "RSA"}, 5, {}]
        skipped += [{**valid, "e": valid["n"]}, {**valid, "n": None}]
        (key,) = _jwks.parse_jwks({"keys": [*skipped, valid]})
        self.assertEqual(key.key_id, "one")
        (key,) = _jwks.parse_jwks({"keys": [{**valid, "alg": "RS512"}]})
        self.assertEqual(key.algorithms, {"RS512"})
        self.assertRaises(AuthenticationFailed, _jwks.parse_jwks, {"keys": [valid] * 101})

    def test_stop(self) -> None:
        """After stop() nothing is fetched."""
        self.tokens.configure([self.configuration("https://late.example.com")])
        self.tokens.stop()
        self.network.calls.clear()
        self.clock.advance(100)
        self.assertEqual((self.network.calls, self.clock.getDelayedCalls()), ([], []))
