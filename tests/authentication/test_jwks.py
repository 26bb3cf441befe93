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
    """How keys are found."""

    def test_discovery(self) -> None:
        """Keys are found below the issuer's URL, or where the configuration says."""
        self.assertEqual(self.issuer.asked, ["/.well-known/openid-configuration", "/keys"])
        self.issuer.pages["/elsewhere"] = 200, json.dumps({"issuer": URL, "jwks_uri": f"{URL}/keys"}).encode()
        self.issuer.asked.clear()
        settings = IssuerSettings(URL, ("me",), f"{URL}/elsewhere", b"PEM")
        self.tokens.configure([JWTAuthenticatorConfig(settings, ClaimOrExpression("sub"))])
        self.assertEqual(self.issuer.asked, ["/elsewhere", "/keys"])
        self.assertEqual([settings.ca for settings, _ in self.network.calls], [b"PEM", b"PEM"])

    def test_query(self) -> None:
        """The place of the keys may have a query."""
        self.tokens.configure([])
        self.tokens.configure([self.configuration()])
        self.assertEqual(self.network.calls[1][1], "v=1")

    def test_later(self) -> None:
        """An issuer that is not there at the start is tried again every ten seconds; until then its tokens are bad."""
        self.network.issuers.clear()
        self.tokens.configure([self.configuration("https://late.example.com")])
        late = Issuer("https://late.example.com")
        self.assertEqual(self.refused(late.token()), "oidc: authenticator not initialized")
        self.clock.advance(10)
        self.network.issuers["late.example.com"] = late
        self.assertEqual(self.refused(late.token()), "oidc: authenticator not initialized")
        self.clock.advance(10)
        self.assertIsNotNone(self.user(late.token()))
        calls = len(self.network.calls)
        self.clock.pump([10] * 5)
        self.assertEqual(len(self.network.calls), calls)

    def test_new_key(self) -> None:
        """A token with a key that is not known has the keys fetched again; all who wait for that get what comes."""
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
        """What is no longer the issuer's key verifies nothing, whoever was known by it."""
        token = self.issuer.token()
        self.assertIsNotNone(self.user(token))
        self.clock.advance(10)
        self.issuer.keys = {"two": KEYS["two"]}
        self.assertIsNotNone(self.user(self.issuer.token("two")))
        self.clock.advance(10)
        self.assertIn("failed to verify", self.refused(token))

    def test_not_too_often(self) -> None:
        """However many unknown keys are named, one fetch in ten seconds is what comes of it."""
        self.clock.advance(10)
        for number in range(50):
            self.assertIn("failed to verify", self.refused(self.issuer.token(headers={"kid": f"x{number}"})))
        self.assertEqual(len(self.network.calls), 1)
        self.clock.advance(10)
        self.refused(self.issuer.token(headers={"kid": "x"}))
        self.assertEqual(len(self.network.calls), 2)

    def test_failed_fetch(self) -> None:
        """Keys that are known stay so when they can not be fetched again."""
        self.clock.advance(10)
        for code, body in ((500, b"{}"), (200, b"garbage"), (200, b"[]"), (200, b"{}"), (200, b'{"keys": {}}')):
            self.issuer.pages["/keys"] = code, body
            self.assertIn("failed to verify", self.refused(self.issuer.token(headers={"kid": "x"})))
            self.assertIsNotNone(self.user(self.issuer.token()))
            self.clock.advance(10)

    def test_counted(self) -> None:
        """Metrics tell how long it took with tokens that were not known, by issuer and result, and when keys came."""
        digest = f"sha256:{sha256(self.issuer.url.encode()).hexdigest()}"

        def told(name: str) -> dict[tuple[str, ...], float]:
            (reading,) = [one for one in self.tokens.collect() if one.name.endswith(name)]
            return {key: one.count if isinstance(one, Histogram) else one for key, one in reading.values}

        keys = "jwks_fetch_last_timestamp_seconds"
        self.assertEqual(told(keys).keys(), {("success", digest, "")})
        token = self.issuer.token()
        for _ in range(3):
            self.user(token)
        self.clock.advance(10)
        self.issuer.pages["/keys"] = 500, b"{}"
        self.refused(self.issuer.token(headers={"kid": "x"}))
        self.refused(self.issuer.token("two", headers={"kid": "one"}))
        self.assertEqual(told("latency_seconds"), {("success", digest): 1, ("failure", digest): 2})
        self.assertEqual(told(keys).keys(), {("success", digest, ""), ("failure", digest, "")})
        self.tokens.configure([])
        self.assertEqual((told("latency_seconds"), told(keys)), ({}, {}))

    def test_refresh(self) -> None:
        """Keys in use are fetched again after a while, and nobody waits for that."""
        self.clock.advance(_jwks.REFRESH_INTERVAL + 1)
        self.network.held = Deferred()
        self.assertIsNotNone(self.user(self.issuer.token()))
        self.assertEqual(len(self.network.calls), 1)
        self.network.held.callback(None)

    def test_not_the_issuer(self) -> None:
        """What tells of another issuer than it was asked as is not believed, and keys come by https."""
        self.issuer.said = "https://evil.example.com"
        self.tokens.configure([])
        self.tokens.configure([self.configuration()])
        self.assertEqual(self.refused(self.issuer.token()), "oidc: authenticator not initialized")
        for document in ({}, {"issuer": URL}, {"issuer": URL, "jwks_uri": "http://x/keys"}):
            self.assertRaises(AuthenticationFailed, _jwks.jwks_uri, document, URL)

    def test_key_set(self) -> None:
        """Of a key set only what can verify tokens is taken, and not too much of it."""
        good = self.issuer.jwks()[0]
        secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
        odd = [secret, {**good, "use": "enc"}, {**good, "n": "AQAB"}, {**good, "n": 5}, {"kty": "RSA"}, 5, {}]
        odd += [{**good, "e": good["n"]}, {**good, "n": None}]
        (key,) = _jwks.parse_jwks({"keys": [*odd, good]})
        self.assertEqual(key.key_id, "one")
        (key,) = _jwks.parse_jwks({"keys": [{**good, "alg": "RS512"}]})
        self.assertEqual(key.algorithms, {"RS512"})
        self.assertRaises(AuthenticationFailed, _jwks.parse_jwks, {"keys": [good] * 101})

    def test_stop(self) -> None:
        """Nothing is fetched after the end."""
        self.tokens.configure([self.configuration("https://late.example.com")])
        self.tokens.stop()
        self.network.calls.clear()
        self.clock.advance(100)
        self.assertEqual((self.network.calls, self.clock.getDelayedCalls()), ([], []))
