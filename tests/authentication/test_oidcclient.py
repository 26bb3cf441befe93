"""Tests for L{kubetwist.authentication.oidcclient}."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.authentication.configuration import (
    AuthenticationConfiguration,
    ClaimOrExpression,
    JWTAuthenticatorConfig,
)
from kubetwist.authentication.configuration import Issuer as IssuerSettings
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.oidcclient import (
    MAX_PARAMETERS_LENGTH,
    ClientSettings,
    Metadata,
    OIDCClient,
    SignInFailed,
    Tokens,
    make_client,
    new_secret,
    parse_parameters,
)
from kubetwist.client.errors import CallError
from tests.oidcprovider import CLIENT, METADATA, Provider, ProviderNetwork

URL = "https://issuer.example.com"
CALLBACK = "https://here.example.com/ui/oidc/callback"


class ClientCase(SynchronousTestCase):
    """A test case with a client and a provider."""

    def setUp(self) -> None:
        """Create the provider, and a public client."""
        self.clock = Clock()
        self.provider = Provider(URL)
        self.network = ProviderNetwork(self.provider)
        self.issuers = [IssuerSettings(URL, (CLIENT, "other"))]
        self.client_secret = ""
        self.client = self.make()
        self.secret = new_secret()

    def make(self, **changes: Any) -> OIDCClient:
        """Return a client."""
        settings = ClientSettings(CLIENT, client_secret=lambda: self.client_secret, **changes)
        return OIDCClient(settings, lambda: self.issuers, self.network, self.clock)  # type: ignore[arg-type] # a fake

    def result(self, coroutine: Any) -> Any:
        """Return the result of a coroutine, which must have ended."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def start(self) -> str:
        """Return the URL of the provider."""
        url: str = self.result(self.client.authorization_url(self.secret, CALLBACK))
        return url

    def response(self, **more: str) -> str:
        """Sign Alice in at the provider; return the parameters of the response."""
        return urlsplit(self.provider.authorize(self.start(), **more)).query

    def redeem(self, query: str, secret: str | None = None) -> Tokens:
        """Exchange the code in a response."""
        found: Tokens = self.result(self.client.redeem(self.secret if secret is None else secret, CALLBACK, query))
        return found

    def failure(self, coroutine: Any) -> str:
        """Return the text of the failure of a coroutine."""
        return str(self.failureResultOf(Deferred.fromCoroutine(coroutine), SignInFailed).value)

    def refusal(self, query: str, secret: str | None = None) -> str:
        """Return why the exchange of a response fails."""
        return self.failure(self.client.redeem(self.secret if secret is None else secret, CALLBACK, query))


class FlowTests(ClientCase):
    """Tests for the flow."""

    def test_authorization_url(self) -> None:
        """The request has PKCE, a state and a nonce, which differ; the secret is not part of it."""
        self.client = self.make(scopes=("email", "openid", "offline_access"))
        url = self.start()
        parameters = dict(parse_qsl(urlsplit(url).query))
        self.assertEqual(parameters["scope"], "openid email offline_access")
        self.assertEqual(parameters["redirect_uri"], CALLBACK)
        derived = {parameters[name] for name in ("state", "nonce", "code_challenge")}
        self.assertEqual([len(one) for one in derived], [43, 43, 43])
        self.assertNotIn(self.secret, url)

    def test_query_of_endpoint(self) -> None:
        """A query in the endpoint is kept."""
        self.provider.document["authorization_endpoint"] = f"{URL}/authorize?tenant=1"
        self.assertTrue(self.start().startswith(f"{URL}/authorize?tenant=1&response_type=code&"))

    def test_redeem(self) -> None:
        """A code is exchanged for an ID token by a public client."""
        tokens = self.redeem(self.response())
        self.assertEqual(tokens.id_token.count("."), 2)
        self.assertEqual((tokens.refresh_token, self.provider.authorizations), ("", [""]))
        self.assertNotIn(tokens.id_token, repr(tokens))

    def test_client_secret(self) -> None:
        """A client with a secret sends it in the header, encoded, or in the form if only that is allowed."""
        self.client_secret = self.provider.secret = "s:e+c r%t"
        self.redeem(self.response())
        self.provider.document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        self.client = self.make()
        self.redeem(self.response())
        first, second = self.provider.authorizations
        self.assertEqual((first[:6], second), ("Basic ", ""))
        self.provider.secret = "another"
        self.assertIn("invalid_client", self.refusal(self.response()))

    def test_replay(self) -> None:
        """A response works once: the provider refuses the code."""
        query = self.response()
        self.redeem(query)
        self.assertEqual(self.refusal(query), "the provider refused the sign-in: invalid_grant: the code is not valid")

    def test_issuer_of_response(self) -> None:
        """The issuer of a response is compared, and required if the provider promises it (mix-up)."""
        self.redeem(self.response(iss=URL))
        self.assertEqual(
            self.refusal(self.response(iss="https://evil.example.com")), "the response is from another provider"
        )
        self.provider.document["authorization_response_iss_parameter_supported"] = True
        self.client = self.make()
        self.redeem(self.response(iss=URL))
        self.assertEqual(self.refusal(self.response()), "the response is from another provider")
        self.assertEqual(len(self.provider.grants), 2)


class AttackTests(ClientCase):
    """Responses that were not requested, or not by this browser."""

    other_browser = "this sign-in was not started in this browser, or took longer than ten minutes"

    def test_other_browser(self) -> None:
        """A response for another browser is refused before any request is sent (login CSRF)."""
        query = self.response()
        for secret in ("", new_secret(), "x", self.secret + "x", "\xff" * 43):
            self.assertEqual(self.refusal(query, secret), self.other_browser)
        self.assertEqual(self.provider.grants, [])

    def test_state(self) -> None:
        """A wrong or missing state is refused."""
        parameters = dict(parse_qsl(self.response()))
        for state in ("", "x", parameters["state"][:-1], parameters["state"] + "x", "\u00e9", self.secret):
            self.assertEqual(self.refusal(urlencode({**parameters, "state": state})), self.other_browser)
        self.assertEqual(self.refusal(urlencode({"code": parameters["code"]})), self.other_browser)

    def test_code_injection(self) -> None:
        """The code of another browser's sign-in is refused by PKCE, even with the right state."""
        stolen = dict(parse_qsl(self.response()))["code"]
        self.secret = new_secret()
        mine = dict(parse_qsl(self.response()))
        self.assertIn("invalid_grant", self.refusal(urlencode({**mine, "code": stolen})))

    def test_nonce(self) -> None:
        """An ID token of another sign-in is refused, even if the provider accepted the code."""
        for nonce in ("other", None, 7, ""):
            self.provider.claims = {"nonce": nonce}
            self.assertEqual(self.refusal(self.response()), "the ID token was issued for another sign-in")

    def test_other_token(self) -> None:
        """An ID token of another issuer, or for another client, is refused."""
        for claims, reason in (
            ({"iss": "https://kubernetes.default.svc.cluster.local"}, "from another issuer"),
            ({"aud": "other"}, "for another client"),
            ({"aud": None}, "for another client"),
            ({"aud": [CLIENT, "other"], "azp": "other"}, "for another client"),
        ):
            self.provider.claims = claims
            self.assertEqual(self.refusal(self.response()), f"the ID token is {reason}")
        self.provider.claims = {"aud": [CLIENT, "other"], "azp": CLIENT}
        self.redeem(self.response())

    def test_repeated(self) -> None:
        """Repeated, too many and too long parameters are refused."""
        query = self.response()
        for other in (
            f"{query}&code=other",
            f"{query}&state=other",
            f"{query}&x={'x' * MAX_PARAMETERS_LENGTH}",
            "&".join(f"p{number}=1" for number in range(40)),
        ):
            self.assertEqual(self.refusal(other), "the response of the provider is invalid")

    @given(st.text(max_size=60))
    def test_any(self, query: str) -> None:
        """No text begins a session or raises another error."""
        try:
            parse_parameters(query)
        except SignInFailed:
            return
        self.assertEqual(self.refusal(query), self.other_browser)


class ProviderErrorTests(ClientCase):
    """Errors and hostile responses of the provider."""

    def test_error_response(self) -> None:
        """An error of the provider is shown in one line, if it belongs to the sign-in."""
        state = dict(parse_qsl(self.response()))["state"]
        hostile = "<img src=x onerror=alert(1)>\r\n\x1b[31m" + "x" * 1000
        text = self.refusal(urlencode({"error": "access_denied", "error_description": hostile, "state": state}))
        self.assertTrue(
            text.startswith("the provider refused the sign-in: access_denied: <img src=x onerror=alert(1)>   [31m")
        )
        self.assertTrue(text.isprintable())
        self.assertLess(len(text), 400)
        self.assertEqual(self.refusal(urlencode({"error": "access_denied", "state": "x"})), AttackTests.other_browser)

    def test_no_code(self) -> None:
        """A response without a code is refused."""
        state = dict(parse_qsl(self.response()))["state"]
        self.assertEqual(self.refusal(urlencode({"state": state})), "the response of the provider has no code")

    def test_token_endpoint(self) -> None:
        """Unusable responses of the token endpoint are errors for the user."""
        for code, body, text in (
            (500, b"<html>", "the provider answered 500, without JSON"),
            (200, b"[]", "the provider answered 200, without JSON"),
            (200, b"", "the provider answered 200, without JSON"),
            (200, b"{}", "the provider has sent no ID token"),
            (200, b'{"id_token": 7}', "the provider has sent invalid tokens"),
            (200, b'{"id_token": ""}', "the provider has sent invalid tokens"),
            (200, b'{"id_token": "a b.c"}', "the provider has sent invalid tokens"),
            (200, json.dumps({"id_token": "x" * 70_000}).encode(), "the provider has sent invalid tokens"),
            (200, b'{"id_token": "a.b.c", "refresh_token": 7}', "the provider has sent invalid tokens"),
            (200, b'{"id_token": "opaque"}', "the ID token is not a JSON Web Token"),
            (200, b'{"id_token": "a.W10.c"}', "the ID token is not a JSON Web Token"),
            (200, b'{"error": {"a": 1}}', "the provider refused the sign-in: error"),
            (302, b"{}", "the provider refused the sign-in: error"),
        ):
            self.provider.override = code, body
            self.assertEqual(self.refusal(self.response()), text)

    def test_unreachable(self) -> None:
        """A provider that does not answer is an error without details, which are logged."""
        query = self.response()
        self.network.held = held = Deferred()
        failing = Deferred.fromCoroutine(self.client.redeem(self.secret, CALLBACK, query))
        self.assertNoResult(failing)
        held.errback(CallError("Post", f"{URL}/token", "context deadline exceeded"))
        self.assertIn("does not answer", str(self.failureResultOf(failing, SignInFailed).value))

    def test_too_many(self) -> None:
        """The number of concurrent requests to the token endpoint is limited."""
        query = self.response()
        self.network.held = held = Deferred()
        waiting = [Deferred.fromCoroutine(self.client.redeem(self.secret, CALLBACK, query)) for _ in range(32)]
        self.assertIn("too many users", self.refusal(query))
        held.callback(None)
        self.assertEqual(len([one for one in waiting if not isinstance(self.ended(one), Tokens)]), 31)
        self.network.held = None
        self.redeem(self.response())

    def ended(self, waiting: Deferred[Any]) -> Any:
        """Return the result or the failure."""
        results: list[Any] = []
        waiting.addBoth(results.append)
        return results[0]


class MetadataTests(ClientCase):
    """Tests for the discovery document."""

    def test_cached(self) -> None:
        """The document is fetched once in five minutes, and again for a changed issuer."""
        for _ in range(3):
            self.start()
        self.assertEqual(self.provider.asked.count(METADATA), 1)
        self.clock.advance(300)
        self.start()
        self.issuers = [IssuerSettings(URL, (CLIENT,))]
        self.start()
        self.assertEqual(self.provider.asked.count(METADATA), 3)

    def test_shared(self) -> None:
        """Concurrent sign-ins share one request."""
        self.network.held = held = Deferred()
        waiting = [Deferred.fromCoroutine(self.client.authorization_url(self.secret, CALLBACK)) for _ in range(5)]
        held.callback(None)
        self.assertEqual(len({self.successResultOf(one) for one in waiting}), 1)
        self.assertEqual(self.provider.asked.count(METADATA), 1)

    def test_failure(self) -> None:
        """A failure is cached for a few seconds."""
        self.provider.pages[METADATA] = (503, b"")
        for _ in range(2):
            self.assertIn("cannot be reached", self.failure(self.client.authorization_url(self.secret, CALLBACK)))
        self.assertEqual(self.provider.asked.count(METADATA), 1)
        self.provider.pages.clear()
        self.clock.advance(5)
        self.start()

    def test_invalid(self) -> None:
        """Documents of another issuer, and endpoints that are not https, are refused."""
        valid = {"issuer": URL, "authorization_endpoint": f"{URL}/a", "token_endpoint": f"{URL}/t"}
        Metadata.parse(valid, URL)
        for change in (
            {"issuer": "https://evil.example.com"},
            {"issuer": None},
            {"authorization_endpoint": "http://issuer.example.com/a"},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"authorization_endpoint": f"{URL}/a#fragment"},
            {"authorization_endpoint": f"{URL}/a\r\nSet-Cookie: x=y"},
            {"authorization_endpoint": "https:///a"},
            {"authorization_endpoint": "https://[/a"},
            {"token_endpoint": "https://user:password@issuer.example.com/t"},
            {"token_endpoint": None},
            {"end_session_endpoint": "javascript:alert(1)"},
            {"token_endpoint": ["x"]},
        ):
            self.assertRaises(AuthenticationFailed, Metadata.parse, {**valid, **change}, URL)

    def test_issuer(self) -> None:
        """The issuer is the first one, or the one of the setting; it must accept tokens for the client."""
        other = IssuerSettings("https://other.example.com", ("x",))
        self.issuers.append(other)
        self.assertEqual(self.client.issuer().url, URL)
        self.assertEqual(self.make(issuer_url=URL).issuer().url, URL)
        for client in (self.make(issuer_url=other.url), self.make(issuer_url="https://unknown.example.com")):
            self.assertRaises(SignInFailed, client.issuer)
        self.issuers.clear()
        self.assertRaises(SignInFailed, self.client.issuer)


class RefreshTests(ClientCase):
    """Tests for L{OIDCClient.refresh}."""

    def tokens(self) -> Tokens:
        """Return tokens of Alice."""
        self.provider.refreshes = True
        return self.redeem(self.response())

    def test_refresh(self) -> None:
        """A refresh returns a new ID token and a new refresh token."""
        before = self.tokens()
        after = self.result(self.client.refresh(before))
        self.assertNotEqual(before.id_token, after.id_token)
        self.assertNotEqual(before.refresh_token, after.refresh_token)
        self.assertEqual(self.provider.grants, ["authorization_code", "refresh_token"])

    def test_not_rotated(self) -> None:
        """A refresh token that is not replaced is kept."""
        before = self.tokens()
        self.provider.refreshes = False
        self.assertEqual(self.result(self.client.refresh(before)).refresh_token, before.refresh_token)

    def test_no_id_token(self) -> None:
        """A response without an ID token is no error."""
        before = self.tokens()
        self.provider.override = 200, b'{"access_token": "x"}'
        self.assertIsNone(self.result(self.client.refresh(before)))

    def test_other_user(self) -> None:
        """An ID token of another user or sign-in is refused."""
        for claims in ({"sub": "mallory"}, {"nonce": "other"}, {"iss": "https://evil.example.com"}):
            self.provider.claims = {}
            before = self.tokens()
            self.provider.claims = claims
            self.failure(self.client.refresh(before))

    def test_revoked(self) -> None:
        """A revoked refresh token is distinguished from a provider that does not answer."""
        failing = Deferred.fromCoroutine(self.client.refresh(Tokens(self.tokens().id_token, "revoked")))
        self.assertTrue(self.failureResultOf(failing, SignInFailed).value.invalid_grant)  # type: ignore[attr-defined] # trap
        before = self.tokens()
        self.provider.override = 503, b'{"error": "temporarily_unavailable"}'
        failing = Deferred.fromCoroutine(self.client.refresh(before))
        self.assertFalse(self.failureResultOf(failing, SignInFailed).value.invalid_grant)  # type: ignore[attr-defined] # trap


class MakeTests(ClientCase):
    """Tests for L{make_client}."""

    def options(self, **changes: Any) -> Any:
        """Return flags."""
        return {
            "ui-oidc-client-id": CLIENT,
            "ui-oidc-client-secret-file": "",
            "ui-oidc-issuer-url": "",
            "ui-oidc-scopes": ("email",),
            **{f"ui-oidc-{name.replace('_', '-')}": value for name, value in changes.items()},
        }

    def server(self, audience: str = CLIENT) -> Any:
        """Return a server with one issuer."""
        issuer = JWTAuthenticatorConfig(IssuerSettings(URL, (audience,)), ClaimOrExpression("sub"))

        def watch(paths: list[str], load: Any, use: Any, source: str) -> Any:
            with open(paths[0], "rb") as file:
                return load([file.read()])

        return SimpleNamespace(
            authentication_configuration=AuthenticationConfiguration((issuer,), None),
            files=SimpleNamespace(watch=watch),
            outgoing=self.network,
            reactor=self.clock,
        )

    def test_none(self) -> None:
        """Without a client ID there is no client."""
        self.assertIsNone(make_client(self.options(client_id=""), self.server()))

    def test_secret_file(self) -> None:
        """The secret is read from a file, without white space around it."""
        path = self.mktemp()
        with open(path, "w") as file:
            file.write("sec ret\n")
        client = make_client(self.options(client_secret_file=path), self.server())
        assert client is not None
        self.assertEqual((client.settings.client_secret(), client.settings.scopes), ("sec ret", ("email",)))
        self.assertNotIn("sec ret", repr(client.settings))

    def test_refused(self) -> None:
        """An unreadable secret, and a client ID that is no audience of the issuer, are refused at the start."""
        empty = self.mktemp()
        with open(empty, "w") as file:
            file.write("\n")
        for options in (self.options(client_secret_file="/nowhere"), self.options(client_secret_file=empty)):
            self.assertRaises(ConfigurationError, make_client, options, self.server())
        self.assertRaises(ConfigurationError, make_client, self.options(), self.server("other"))
        self.assertRaises(ConfigurationError, make_client, self.options(issuer_url="https://x"), self.server())


class EncodingTests(ClientCase):
    """The URL of a request contains no more than it must."""

    def test_parameters(self) -> None:
        """Each parameter occurs once."""
        self.assertTrue(all(len(values) == 1 for values in parse_qs(urlsplit(self.start()).query).values()))
