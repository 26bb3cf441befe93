"""
Tests for L{kubetwist.authentication.oidc} and its parts; expressions are in L{tests.authentication.test_expressions}.
"""

from __future__ import annotations

import contextlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import jwt
import orjson
from hypothesis import given
from hypothesis import strategies as st

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import oidc
from kubetwist.authentication.configuration import ClaimOrExpression
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.oidc import OIDCAuthenticator
from kubetwist.authentication.union import AuthenticatorUnion, TokenAuthentication
from tests.authentication.oidccase import HERE, URL, Request, TokenCase
from tests.oidcissuer import CURVE, KEYS, NOW, Issuer

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


class VerificationTests(TokenCase):
    """Tests of the verification of tokens: issuer, audience, times and signature."""

    def test_user(self) -> None:
        """A valid token has a user, its groups and the token id."""
        token = self.issuer.token(jti="x", groups=["a", "b"])
        extra = {"authentication.kubernetes.io/credential-id": ("JTI=x",)}
        self.assertEqual(self.user(token), UserInfo("oidc:alice", "", ("a", "b", "system:authenticated"), extra))
        self.assertEqual(self.network.calls, [])

    def test_other_issuer(self) -> None:
        """Text that is not a token and tokens of other issuers are ignored without any I/O."""
        for token in (None, "", "abc", "a.b", "a.b.c", "e30.e30.", self.issuer.token(iss="https://other")):
            self.assertIsNone(self.tokens.authenticate(Request(token)))
        self.assertEqual(self.network.calls, [])

    def test_audience(self) -> None:
        """A token must be valid for one of the audiences."""
        self.assertIsNotNone(self.user(self.issuer.token(aud=["x", "me"])))
        for audience, shown in (("x", '["x"]'), (["x", "y"], '["x" "y"]'), (None, "[]"), (5, "[]")):
            text = f'oidc: verify token: oidc: expected audience "me" got {shown}'
            self.assertEqual(self.error_text(self.issuer.token(aud=audience)), text)
        self.tokens.configure([self.configuration(audiences=("b", "a"))])
        self.assertIsNotNone(self.user(self.issuer.token(aud="a")))
        text = 'oidc: verify token: oidc: expected audience in ["a" "b"] got ["me"]'
        self.assertEqual(self.error_text(self.issuer.token()), text)

    def test_times(self) -> None:
        """A token must have an expiration time that has not passed; C{nbf} allows a clock skew of one minute."""
        text = "oidc: verify token: oidc: token is expired (Token Expiry: 2027-01-15 07:59:59 +0000 UTC)"
        self.assertEqual(self.error_text(self.issuer.token(exp=NOW - 1)), text)
        for claims in ({"exp": None}, {"exp": "x"}, {"exp": True}, {"exp": -1e300}, {"nbf": 1e300}, {"nbf": NOW + 61}):
            self.assertIn("oidc: verify token: oidc: ", self.error_text(self.issuer.token(**claims)))
        self.assertIsNotNone(self.user(self.issuer.token(nbf=NOW + 59)))

    def test_wrong_key(self) -> None:
        """A token that is signed with another key is rejected, also with the key id of a known key."""
        forged = self.issuer.token("two", headers={"kid": "one"})
        text = "oidc: verify token: failed to verify signature: failed to verify id token signature"
        self.assertEqual(self.error_text(forged), text)
        head, _, signature = self.issuer.token().split(".")
        other = self.issuer.token(sub="root").split(".")[1]
        self.assertEqual(self.error_text(f"{head}.{other}.{signature}"), text)
        self.assertEqual(self.network.calls, [])

    def test_wrong_algorithm(self) -> None:
        """The algorithm must be accepted and match the key."""
        self.assertIsNotNone(self.user(self.issuer.token(algorithm="PS512")))
        self.tokens = OIDCAuthenticator(self.network, self.clock, [HERE], ["RS256"], now=lambda: self.now)
        self.tokens.configure([self.configuration()])
        text = 'oidc: id token signed with unsupported algorithm, expected ["RS256"] got "PS512"'
        self.assertEqual(self.error_text(self.issuer.token(algorithm="PS512")), f"oidc: verify token: {text}")
        secret = self.issuer.jwks()[0]["n"]
        for algorithm, key in (("none", None), ("HS256", secret)):
            claims = {"iss": URL, "aud": "me", "sub": "root", "exp": NOW + 5}
            self.assertIn("unsupported algorithm", self.error_text(jwt.encode(claims, key, algorithm=algorithm)))

    def test_curves(self) -> None:
        """A key on an elliptic curve verifies signatures of its algorithm only."""
        self.issuer.keys["one"] = CURVE
        self.tokens = OIDCAuthenticator(self.network, self.clock, [HERE], now=lambda: self.now)
        self.tokens.configure([self.configuration()])
        self.assertIsNotNone(self.user(self.issuer.token(algorithm="ES256")))
        self.assertIn("failed to verify", self.error_text(self.issuer.token()))

    def test_extensions(self) -> None:
        """A header with unsupported extensions is rejected."""
        token = self.issuer.token(headers={"kid": "one", "crit": ["exp"], "exp": 5})
        self.assertIn("requires unsupported extensions", self.error_text(token))

    def test_google(self) -> None:
        """Google's issuer has two names."""
        google = Issuer("https://accounts.google.com")
        self.network.issuers["accounts.google.com"] = google
        self.tokens.configure([self.configuration(google.url)])
        self.assertIsNotNone(self.user(google.token(iss="accounts.google.com")))

    def test_several_issuers(self) -> None:
        """An issuer cannot issue tokens for another issuer."""
        other = Issuer("https://other.example.com", "two")
        self.network.issuers["other.example.com"] = other
        self.tokens.configure(
            [self.configuration(), self.configuration(other.url, username=ClaimOrExpression("sub", "other:"))]
        )
        self.assertEqual(self.user(self.issuer.token()).name, "oidc:alice")  # type: ignore[union-attr]
        self.assertEqual(self.user(other.token("two")).name, "other:alice")  # type: ignore[union-attr]
        self.assertIn("failed to verify", self.error_text(other.token("one", headers={"kid": "two"})))

    def test_review(self) -> None:
        """TokenReviews accept these tokens for the audiences of this server only."""
        union = AuthenticatorUnion([self.tokens])
        token = self.issuer.token()
        self.assertEqual(union.authenticate_token(token, ["x", HERE]), TokenAuthentication(self.user(token)))
        self.assertIsNone(union.authenticate_token(token, ["x"]).user)


class GarbageTests(TokenCase):
    """Any token is authenticated, ignored or rejected."""

    def token_of(self, header: Any, claims: Any) -> str:
        """Return text of the form of a token."""
        parts = (json.dumps(header).encode(), json.dumps(claims).encode(), b"signature")
        return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)

    def assert_not_authenticated(self, token: str) -> None:
        """Assert that a token is ignored or rejected."""
        with contextlib.suppress(AuthenticationFailed):
            self.assertIsNone(self.user(token))

    @given(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("alg", "kid", "crit", "typ", "b64"), _JSON)),
        st.fixed_dictionaries({}, optional=dict.fromkeys(("aud", "exp", "nbf", "sub", "_claim_names"), _JSON)),
        st.booleans(),
    )
    def test_claims(self, header: dict[str, Any], claims: dict[str, Any], valid: bool) -> None:
        """Claims and headers of any form are rejected without a valid signature."""
        if valid:
            header = {"alg": "RS256", "kid": "one", **header}
            claims = {"aud": "me", "exp": NOW + 5, "sub": "x", **claims}
        self.assert_not_authenticated(self.token_of(header, {"iss": URL, **claims}))
        self.assert_not_authenticated(self.token_of(header, claims))

    @given(
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("sub", "groups", "jti", "_claim_names", "_claim_sources", "x"), _JSON)
        )
    )
    def test_signed(self, claims: dict[str, Any]) -> None:
        """Signed claims of any form are authenticated or rejected."""
        signed = {"iss": URL, "aud": "me", "exp": NOW + 5, **claims}
        token = jwt.PyJWS().encode(orjson.dumps(signed), KEYS["one"], "RS256", {"kid": "one"})
        try:
            user = self.user(token)
        except AuthenticationFailed:
            return
        assert user is not None
        self.assertTrue(all(isinstance(one, str) for one in (user.name, *user.groups)))

    @given(st.lists(st.text(), min_size=3, max_size=3))
    def test_parts(self, parts: list[str]) -> None:
        """Three arbitrary parts are ignored or rejected."""
        self.assertIsNone(self.user(".".join(parts)))


class RememberTests(TokenCase):
    """Tests of the cache of tokens."""

    def count(self) -> list[None]:
        """Return a list that grows with each verification of a signature."""
        counted: list[None] = []
        verify = oidc._verified_payload

        def payload(*arguments: Any) -> Any:
            counted.append(None)
            return verify(*arguments)

        self.patch(oidc, "_verified_payload", payload)
        return counted

    def test_once(self) -> None:
        """A valid token is verified once until it expires."""
        counted = self.count()
        token = self.issuer.token()
        for _ in range(3):
            self.assertIsNotNone(self.user(token))
        self.assertEqual(len(counted), 1)
        self.now += 600.5
        self.assertIn("expired", self.error_text(token))

    def test_bounded(self) -> None:
        """A limited number of valid tokens is cached, and no invalid tokens."""
        self.patch(oidc, "MAX_CACHE_ENTRIES", 2)
        counted = self.count()
        tokens = [self.issuer.token(jti=str(number)) for number in range(3)]
        for token in tokens:
            self.user(token)
        self.error_text(self.issuer.token("two", headers={"kid": "one"}))
        self.assertEqual(len(self.tokens._cache), 2)
        counted.clear()
        self.user(tokens[2])
        self.assertEqual(counted, [])
        self.user(tokens[0])
        self.assertEqual(len(counted), 1)

    def test_other_rules(self) -> None:
        """A new configuration clears the cache and keeps the keys of unchanged issuers."""
        token = self.issuer.token()
        self.assertIsNotNone(self.user(token))
        self.tokens.configure([self.configuration(username=ClaimOrExpression("sub", "x:"))])
        self.assertEqual(self.user(token).name, "x:alice")  # type: ignore[union-attr]
        self.assertEqual(self.network.calls, [])
        self.tokens.configure([])
        self.assertIsNone(self.user(token))


class DistributedTests(TokenCase):
    """Tests of distributed claims for groups."""

    def setUp(self) -> None:
        """Create an issuer of distributed claims."""
        super().setUp()
        self.other = Issuer("https://groups.example.com", "two")
        self.network.issuers["groups.example.com"] = self.other
        self.reported(self.other.token("two", groups=["far"]))

    def reported(self, token: str) -> None:
        """Return the response of the claims endpoint."""
        self.other.pages["/groups"] = 200, token.encode()

    def token(self, endpoint: Any = None, **claims: Any) -> str:
        """Return a token with a source of distributed claims."""
        place = {"endpoint": "https://groups.example.com/groups", "access_token": "secret"}
        sources = {"src": place if endpoint is None else endpoint}
        return self.issuer.token(**{"_claim_names": {"groups": "src"}, "_claim_sources": sources, **claims})

    def test_groups(self) -> None:
        """Groups are fetched with the access token of the source, and cached for ten seconds."""
        token = self.token()
        for seconds in (0, 9, 1.1):
            self.now += seconds
            user = self.user(token)
            assert user is not None
            self.assertEqual(user.groups, ("far", "system:authenticated"))
        fetches = [settings for settings, _ in self.network.calls if settings.url.endswith("/groups")]
        self.assertEqual([(one.token, one.deny_internal) for one in fetches], [("secret", True)] * 2)
        self.assertEqual(self.other.asked.count("/keys"), 1)

    def test_not_needed(self) -> None:
        """A token with groups, or without a source for them, causes no fetch."""
        self.assertIn("near", self.user(self.token(groups=["near"])).groups)  # type: ignore[union-attr]
        self.assertIsNotNone(self.user(self.token(_claim_names={"x": "src"})))
        self.assertIsNotNone(self.user(self.token({"JWT": "aggregated"})))
        self.assertEqual(self.network.calls, [])

    def test_bad(self) -> None:
        """Distributed claims that cannot be fetched or verified fail the authentication."""
        for token, text in (
            (self.token(_claim_sources=None), "oidc: no claim sources"),
            (self.token(_claim_names=5), "oidc: error parsing distributed claim names"),
            (self.token(_claim_sources=5), "oidc: could not parse claim sources"),
            (self.token(_claim_names={"groups": "x"}), "contained a source x missing in _claims_sources"),
            (self.token({"endpoint": "http://groups.example.com/groups"}), "its endpoint is not an https URL"),
            (self.token({"endpoint": "https://groups.example.com/x"}), "https://groups.example.com/x answered 404"),
            (self.token({"endpoint": "https://nowhere/x"}), "no such host"),
        ):
            self.assertIn(text, self.error_text(token))
        for reported, text in (
            ("garbage", "getting untrusted issuer from endpoint"),
            (
                self.other.token("one", headers={"kid": "two"}),
                "verify distributed claim token: oidc: verify token: failed",
            ),
            (
                self.other.token("two", aud="x"),
                "verify distributed claim token: oidc: verify token: oidc: expected audience",
            ),
            (self.other.token("two"), "did not contain claim: groups"),
            (self.other.token("two", iss="http://x", groups=["a"]), "verifier not initialized for issuer"),
        ):
            self.reported(reported)
            self.assertIn(text, self.error_text(self.token()))
            self.clock.advance(10)

    def test_few_issuers(self) -> None:
        """The number of issuers of distributed claims is limited."""
        for number in range(20):
            issuer = Issuer(f"https://g{number}.example.com", "two")
            self.network.issuers[f"g{number}.example.com"] = issuer
            self.reported(issuer.token("two", groups=["a"]))
            if number < 16:
                self.assertIsNotNone(self.user(self.token(jti=str(number))))
            else:
                self.assertIn("verifier not initialized", self.error_text(self.token(jti=str(number))))
