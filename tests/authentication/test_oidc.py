"""Tests for L{kubetwist.authentication.oidc}, and for what it is made of but expressions."""

from __future__ import annotations

import contextlib
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any, ClassVar

import jwt
import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import oidc, oidckeys
from kubetwist.authentication.configuration import Issuer as IssuerSettings
from kubetwist.authentication.configuration import JWTConfiguration, Source
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.oidc import OpenIDConnectTokens
from kubetwist.authentication.union import AuthenticatorUnion, TokenFinding
from kubetwist.interfaces import IAuthenticator
from kubetwist.metrics.registry import Distribution
from tests.oidcissuer import CURVE, KEYS, NOW, Issuer, Network

HERE = "https://here"
URL = "https://issuer.example.com"


class Request:
    """As much of a request as authenticators look at."""

    def __init__(self, token: str | None) -> None:
        self.fields = {} if token is None else {b"authorization": [b"Bearer " + token.encode()]}

    def warn(self, text: str) -> None:
        """Nobody reads it."""


class TokenCase(SynchronousTestCase):
    """A test with an issuer, whose tokens are accepted."""

    mapping: ClassVar[dict[str, Any]] = {"groups": Source("groups")}

    def setUp(self) -> None:
        """The issuer is known."""
        self.clock = Clock()
        self.now = float(NOW)
        self.issuer = Issuer(URL)
        self.network = Network(self.issuer)
        self.tokens = OpenIDConnectTokens(self.network, self.clock, [HERE], now=lambda: self.now)
        verifyObject(IAuthenticator, self.tokens)
        self.addCleanup(self.tokens.stop)
        self.tokens.use([self.configuration()])
        self.network.calls.clear()

    def configuration(self, url: str = URL, audiences: tuple[str, ...] = ("me",), **changes: Any) -> JWTConfiguration:
        """How users are made of tokens."""
        values = {"username": Source("sub", "oidc:"), **self.mapping, **changes}
        return JWTConfiguration(IssuerSettings(url, audiences), **values)

    def user(self, token: str | None) -> UserInfo | None:
        """Whose a token is."""
        user = self.tokens.authenticate(Request(token))
        return self.successResultOf(user) if isinstance(user, Deferred) else user  # type: ignore[no-any-return]

    def refused(self, token: str) -> str:
        """Why it is nobody's."""
        try:
            user = self.tokens.authenticate(Request(token))
        except AuthenticationFailed as error:
            return str(error)
        self.assertIsInstance(user, Deferred)
        return str(self.failureResultOf(user, AuthenticationFailed).value)


class VerificationTests(TokenCase):
    """Who issued a token, for whom, when, and how it is signed."""

    def test_user(self) -> None:
        """A good token names its user and its groups, and which token it is."""
        token = self.issuer.token(jti="x", groups=["a", "b"])
        extra = {"authentication.kubernetes.io/credential-id": ("JTI=x",)}
        self.assertEqual(self.user(token), UserInfo("oidc:alice", "", ("a", "b", "system:authenticated"), extra))
        self.assertEqual(self.network.calls, [])

    def test_somebody_elses(self) -> None:
        """What is no token, or one of another issuer, is not ours to judge, and nobody is asked about it."""
        for token in (None, "", "abc", "a.b", "a.b.c", "e30.e30.", self.issuer.token(iss="https://other")):
            self.assertIsNone(self.tokens.authenticate(Request(token)))
        self.assertEqual(self.network.calls, [])

    def test_audience(self) -> None:
        """A token must be meant for one of the audiences."""
        self.assertIsNotNone(self.user(self.issuer.token(aud=["x", "me"])))
        for audience, shown in (("x", '["x"]'), (["x", "y"], '["x" "y"]'), (None, "[]"), (5, "[]")):
            text = f'oidc: verify token: oidc: expected audience "me" got {shown}'
            self.assertEqual(self.refused(self.issuer.token(aud=audience)), text)
        self.tokens.use([self.configuration(audiences=("b", "a"))])
        self.assertIsNotNone(self.user(self.issuer.token(aud="a")))
        text = 'oidc: verify token: oidc: expected audience in ["a" "b"] got ["me"]'
        self.assertEqual(self.refused(self.issuer.token()), text)

    def test_times(self) -> None:
        """A token must have an end, and not have come to it; clocks may differ a minute about its beginning."""
        text = "oidc: verify token: oidc: token is expired (Token Expiry: 2027-01-15 07:59:59 +0000 UTC)"
        self.assertEqual(self.refused(self.issuer.token(exp=NOW - 1)), text)
        for claims in ({"exp": None}, {"exp": "x"}, {"exp": True}, {"exp": -1e300}, {"nbf": 1e300}, {"nbf": NOW + 61}):
            self.assertIn("oidc: verify token: oidc: ", self.refused(self.issuer.token(**claims)))
        self.assertIsNotNone(self.user(self.issuer.token(nbf=NOW + 59)))

    def test_wrong_key(self) -> None:
        """A key that is not the issuer's has no say, whatever it is called."""
        forged = self.issuer.token("two", headers={"kid": "one"})
        text = "oidc: verify token: failed to verify signature: failed to verify id token signature"
        self.assertEqual(self.refused(forged), text)
        head, _, signature = self.issuer.token().split(".")
        other = self.issuer.token(sub="root").split(".")[1]
        self.assertEqual(self.refused(f"{head}.{other}.{signature}"), text)
        self.assertEqual(self.network.calls, [])

    def test_wrong_algorithm(self) -> None:
        """A token is signed in one of the ways that are accepted, and with a key for that."""
        self.assertIsNotNone(self.user(self.issuer.token(algorithm="PS512")))
        self.tokens = OpenIDConnectTokens(self.network, self.clock, [HERE], ["RS256"], now=lambda: self.now)
        self.tokens.use([self.configuration()])
        text = 'oidc: id token signed with unsupported algorithm, expected ["RS256"] got "PS512"'
        self.assertEqual(self.refused(self.issuer.token(algorithm="PS512")), f"oidc: verify token: {text}")
        secret = self.issuer.jwks()[0]["n"]
        for algorithm, key in (("none", None), ("HS256", secret)):
            claims = {"iss": URL, "aud": "me", "sub": "root", "exp": NOW + 5}
            self.assertIn("unsupported algorithm", self.refused(jwt.encode(claims, key, algorithm=algorithm)))

    def test_curves(self) -> None:
        """A key on a curve verifies what was signed with its own algorithm."""
        self.issuer.keys["one"] = CURVE
        self.tokens = OpenIDConnectTokens(self.network, self.clock, [HERE], now=lambda: self.now)
        self.tokens.use([self.configuration()])
        self.assertIsNotNone(self.user(self.issuer.token(algorithm="ES256")))
        self.assertIn("failed to verify", self.refused(self.issuer.token()))

    def test_extensions(self) -> None:
        """A header that asks for more than we know is refused."""
        token = self.issuer.token(headers={"kid": "one", "crit": ["exp"], "exp": 5})
        self.assertIn("asks for extensions", self.refused(token))

    def test_google(self) -> None:
        """Google's issuer has two names."""
        google = Issuer("https://accounts.google.com")
        self.network.issuers["accounts.google.com"] = google
        self.tokens.use([self.configuration(google.url)])
        self.assertIsNotNone(self.user(google.token(iss="accounts.google.com")))

    def test_several_issuers(self) -> None:
        """Each issuer is good for its own tokens."""
        other = Issuer("https://other.example.com", "two")
        self.network.issuers["other.example.com"] = other
        self.tokens.use([self.configuration(), self.configuration(other.url, username=Source("sub", "other:"))])
        self.assertEqual(self.user(self.issuer.token()).name, "oidc:alice")  # type: ignore[union-attr]
        self.assertEqual(self.user(other.token("two")).name, "other:alice")  # type: ignore[union-attr]
        self.assertIn("failed to verify", self.refused(other.token("one", headers={"kid": "two"})))

    def test_review(self) -> None:
        """For those who review tokens these are this server's, and for others they are nobody's."""
        union = AuthenticatorUnion([self.tokens])
        token = self.issuer.token()
        self.assertEqual(union.user_of_token(token, ["x", HERE]), TokenFinding(self.user(token)))
        self.assertIsNone(union.user_of_token(token, ["x"]).user)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


class GarbageTests(TokenCase):
    """Whatever comes as a token is somebody's, or refused."""

    def token_of(self, header: Any, claims: Any) -> str:
        """What has the form of a token."""
        parts = (json.dumps(header).encode(), json.dumps(claims).encode(), b"signature")
        return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)

    def assert_nobody(self, token: str) -> None:
        """Expect that it is nobody's."""
        with contextlib.suppress(AuthenticationFailed):
            self.assertIsNone(self.user(token))

    @given(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("alg", "kid", "crit", "typ", "b64"), _JSON)),
        st.fixed_dictionaries({}, optional=dict.fromkeys(("aud", "exp", "nbf", "sub", "_claim_names"), _JSON)),
        st.booleans(),
    )
    def test_claims(self, header: dict[str, Any], claims: dict[str, Any], good: bool) -> None:
        """Claims and headers of any form are nobody's without a signature."""
        if good:
            header = {"alg": "RS256", "kid": "one", **header}
            claims = {"aud": "me", "exp": NOW + 5, "sub": "x", **claims}
        self.assert_nobody(self.token_of(header, {"iss": URL, **claims}))
        self.assert_nobody(self.token_of(header, claims))

    @given(
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("sub", "groups", "jti", "_claim_names", "_claim_sources", "x"), _JSON)
        )
    )
    def test_signed(self, claims: dict[str, Any]) -> None:
        """Even what the issuer has signed is a user, or refused."""
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
        """Any three parts are nobody's."""
        self.assertIsNone(self.user(".".join(parts)))


class RememberTests(TokenCase):
    """What is remembered of tokens."""

    def count(self) -> list[None]:
        """Whenever a signature is looked at, this gets longer."""
        counted: list[None] = []
        verify = oidc._payload

        def payload(*arguments: Any) -> Any:
            counted.append(None)
            return verify(*arguments)

        self.patch(oidc, "_payload", payload)
        return counted

    def test_once(self) -> None:
        """A good token is verified once, until it expires."""
        counted = self.count()
        token = self.issuer.token()
        for _ in range(3):
            self.assertIsNotNone(self.user(token))
        self.assertEqual(len(counted), 1)
        self.now += 600.5
        self.assertIn("expired", self.refused(token))

    def test_bounded(self) -> None:
        """Of good tokens the last ones are remembered, and of bad ones nothing."""
        self.patch(oidc, "REMEMBERED", 2)
        counted = self.count()
        tokens = [self.issuer.token(jti=str(number)) for number in range(3)]
        for token in tokens:
            self.user(token)
        self.refused(self.issuer.token("two", headers={"kid": "one"}))
        self.assertEqual(len(self.tokens._known), 2)
        counted.clear()
        self.user(tokens[2])
        self.assertEqual(counted, [])
        self.user(tokens[0])
        self.assertEqual(len(counted), 1)

    def test_other_rules(self) -> None:
        """Another configuration forgets who was known, but not the keys of issuers that stay."""
        token = self.issuer.token()
        self.assertIsNotNone(self.user(token))
        self.tokens.use([self.configuration(username=Source("sub", "x:"))])
        self.assertEqual(self.user(token).name, "x:alice")  # type: ignore[union-attr]
        self.assertEqual(self.network.calls, [])
        self.tokens.use([])
        self.assertIsNone(self.user(token))


class KeyTests(TokenCase):
    """How keys are found."""

    def test_discovery(self) -> None:
        """Keys are found below the issuer's URL, or where the configuration says."""
        self.assertEqual(self.issuer.asked, ["/.well-known/openid-configuration", "/keys"])
        self.issuer.pages["/elsewhere"] = 200, json.dumps({"issuer": URL, "jwks_uri": f"{URL}/keys"}).encode()
        self.issuer.asked.clear()
        settings = IssuerSettings(URL, ("me",), f"{URL}/elsewhere", b"PEM")
        self.tokens.use([JWTConfiguration(settings, Source("sub"))])
        self.assertEqual(self.issuer.asked, ["/elsewhere", "/keys"])
        self.assertEqual([settings.ca for settings, _ in self.network.calls], [b"PEM", b"PEM"])

    def test_query(self) -> None:
        """The place of the keys may have a query."""
        self.tokens.use([])
        self.tokens.use([self.configuration()])
        self.assertEqual(self.network.calls[1][1], "v=1")

    def test_later(self) -> None:
        """An issuer that is not there at the start is tried again every ten seconds; until then its tokens are bad."""
        self.network.issuers.clear()
        self.tokens.use([self.configuration("https://late.example.com")])
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
            (reading,) = [one for one in self.tokens.readings() if one.name.endswith(name)]
            return {key: one.count if isinstance(one, Distribution) else one for key, one in reading.values}

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
        self.tokens.use([])
        self.assertEqual((told("latency_seconds"), told(keys)), ({}, {}))

    def test_refresh(self) -> None:
        """Keys in use are fetched again after a while, and nobody waits for that."""
        self.clock.advance(oidckeys.REFRESH + 1)
        self.network.held = Deferred()
        self.assertIsNotNone(self.user(self.issuer.token()))
        self.assertEqual(len(self.network.calls), 1)
        self.network.held.callback(None)

    def test_not_the_issuer(self) -> None:
        """What tells of another issuer than it was asked as is not believed, and keys come by https."""
        self.issuer.said = "https://evil.example.com"
        self.tokens.use([])
        self.tokens.use([self.configuration()])
        self.assertEqual(self.refused(self.issuer.token()), "oidc: authenticator not initialized")
        for document in ({}, {"issuer": URL}, {"issuer": URL, "jwks_uri": "http://x/keys"}):
            self.assertRaises(AuthenticationFailed, oidckeys.keys_url, document, URL)

    def test_key_set(self) -> None:
        """Of a key set only what can verify tokens is taken, and not too much of it."""
        good = self.issuer.jwks()[0]
        secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
        odd = [secret, {**good, "use": "enc"}, {**good, "n": "AQAB"}, {**good, "n": 5}, {"kty": "RSA"}, 5, {}]
        odd += [{**good, "e": good["n"]}, {**good, "n": None}]
        (key,) = oidckeys.read_keys({"keys": [*odd, good]})
        self.assertEqual(key.key_id, "one")
        (key,) = oidckeys.read_keys({"keys": [{**good, "alg": "RS512"}]})
        self.assertEqual(key.algorithms, {"RS512"})
        self.assertRaises(AuthenticationFailed, oidckeys.read_keys, {"keys": [good] * 101})

    def test_stop(self) -> None:
        """Nothing is fetched after the end."""
        self.tokens.use([self.configuration("https://late.example.com")])
        self.tokens.stop()
        self.network.calls.clear()
        self.clock.advance(100)
        self.assertEqual((self.network.calls, self.clock.getDelayedCalls()), ([], []))


class ClaimTests(TokenCase):
    """What claims make of a user."""

    mapping: ClassVar[dict[str, Any]] = {
        "groups": Source("roles", "g:"),
        "uid": Source("uid"),
        "required": {"hd": "example.com"},
    }

    def token(self, **claims: Any) -> str:
        """A token that has what is required."""
        return self.issuer.token(**{"hd": "example.com", "uid": "u", **claims})

    def test_all(self) -> None:
        """Names get their prefixes; a single group needs no list."""
        user = self.user(self.token(roles="a"))
        self.assertEqual(user, UserInfo("oidc:alice", "u", ("g:a", "system:authenticated")))
        self.assertEqual(self.user(self.token(roles=["a", "b"])).groups[:2], ("g:a", "g:b"))  # type: ignore[union-attr]
        self.assertEqual(self.user(self.token(roles=[])).groups, ("system:authenticated",))  # type: ignore[union-attr]

    def test_wrong_types(self) -> None:
        """What is no text is refused, in the words of Go."""
        for claims, text in (
            (
                {"sub": 5},
                'oidc: parse username claims "sub": json: cannot unmarshal number into Go value of type string',
            ),
            ({"sub": None}, 'oidc: parse username claims "sub": claim not present'),
            (
                {"roles": {"a": 1}},
                'oidc: parse groups claim "roles": json: cannot unmarshal object into Go value of type string',
            ),
            (
                {"roles": ["a", 5]},
                'oidc: parse groups claim "roles": json: cannot unmarshal array into Go value of type string',
            ),
            ({"uid": None}, 'oidc: parse uid claim "uid": claim not present'),
            ({"hd": None}, "oidc: required claim hd not present in ID token"),
            ({"hd": "x"}, "oidc: required claim hd value does not match. Got = x, want = example.com"),
            ({"hd": True}, "oidc: parse claim hd: json: cannot unmarshal bool into Go value of type string"),
        ):
            self.assertEqual(self.refused(self.token(**claims)), text)

    def test_empty_name(self) -> None:
        """Nobody is without a name."""
        self.tokens.use([self.configuration(username=Source("sub"))])
        self.assertEqual(self.refused(self.token(sub="")), "oidc: an empty username is not allowed")

    def test_email(self) -> None:
        """An address counts unless the issuer says that it has not been verified."""
        self.tokens.use([self.configuration(username=Source("email"))])
        self.assertIsNotNone(self.user(self.token(email="a@b")))
        self.assertIsNotNone(self.user(self.token(email="a@b", email_verified=True)))
        for said, text in (
            (False, "oidc: email not verified"),
            (
                "true",
                "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool",
            ),
        ):
            self.assertEqual(self.refused(self.token(email="a@b", email_verified=said)), text)


class DistributedTests(TokenCase):
    """Groups that stand elsewhere."""

    def setUp(self) -> None:
        """Another issuer tells the groups."""
        super().setUp()
        self.other = Issuer("https://groups.example.com", "two")
        self.network.issuers["groups.example.com"] = self.other
        self.told(self.other.token("two", groups=["far"]))

    def told(self, token: str) -> None:
        """What stands there."""
        self.other.pages["/groups"] = 200, token.encode()

    def token(self, endpoint: Any = None, **claims: Any) -> str:
        """A token that says where groups are."""
        place = {"endpoint": "https://groups.example.com/groups", "access_token": "secret"}
        sources = {"src": place if endpoint is None else endpoint}
        return self.issuer.token(**{"_claim_names": {"groups": "src"}, "_claim_sources": sources, **claims})

    def test_groups(self) -> None:
        """Groups are asked for with the token that there is for that, and remembered for ten seconds."""
        token = self.token()
        for seconds in (0, 9, 1.1):
            self.now += seconds
            user = self.user(token)
            assert user is not None
            self.assertEqual(user.groups, ("far", "system:authenticated"))
        asked = [settings for settings, _ in self.network.calls if settings.url.endswith("/groups")]
        self.assertEqual([(one.token, one.guarded) for one in asked], [("secret", True)] * 2)
        self.assertEqual(self.other.asked.count("/keys"), 1)

    def test_not_needed(self) -> None:
        """A token that tells its groups, or names no place for them, needs nobody else."""
        self.assertIn("near", self.user(self.token(groups=["near"])).groups)  # type: ignore[union-attr]
        self.assertIsNotNone(self.user(self.token(_claim_names={"x": "src"})))
        self.assertIsNotNone(self.user(self.token({"JWT": "aggregated"})))
        self.assertEqual(self.network.calls, [])

    def test_bad(self) -> None:
        """What can not be had, or is not signed by whom it says, is nothing."""
        for token, text in (
            (self.token(_claim_sources=None), "oidc: no claim sources"),
            (self.token(_claim_names=5), "oidc: error parsing distributed claim names"),
            (self.token(_claim_sources=5), "oidc: could not parse claim sources"),
            (self.token(_claim_names={"groups": "x"}), "contained a source x missing in _claims_sources"),
            (self.token({"endpoint": "http://groups.example.com/groups"}), "its endpoint is no https URL"),
            (self.token({"endpoint": "https://groups.example.com/x"}), "https://groups.example.com/x answered 404"),
            (self.token({"endpoint": "https://nowhere/x"}), "no such host"),
        ):
            self.assertIn(text, self.refused(token))
        for told, text in (
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
            self.told(told)
            self.assertIn(text, self.refused(self.token()))
            self.clock.advance(10)

    def test_few_issuers(self) -> None:
        """Not everybody is got to know whom somebody names."""
        for number in range(20):
            issuer = Issuer(f"https://g{number}.example.com", "two")
            self.network.issuers[f"g{number}.example.com"] = issuer
            self.told(issuer.token("two", groups=["a"]))
            if number < 16:
                self.assertIsNotNone(self.user(self.token(jti=str(number))))
            else:
                self.assertIn("verifier not initialized", self.refused(self.token(jti=str(number))))
