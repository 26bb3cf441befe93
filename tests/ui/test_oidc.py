"""Tests for L{kubetwist.ui.oidc}, and for sign-in with the response of a provider at C{/ui/session}."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.audit.auditedrequest import audited_request
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.errors import Counts
from kubetwist.audit.policy import read_policy
from kubetwist.authentication.configuration import ClaimOrExpression, Issuer, JWTAuthenticatorConfig
from kubetwist.authentication.oidc import OIDCAuthenticator
from kubetwist.authentication.oidcclient import ClientSettings, OIDCClient
from kubetwist.authentication.oidcsignin import OIDCSignIn
from kubetwist.authentication.sessions import SessionAuthenticator, SessionStore
from kubetwist.authentication.signinlinks import SignInLinks
from kubetwist.authentication.union import AuthenticatorUnion
from kubetwist.ui.page import POLICY, with_ui
from tests.audit.events import RecordingBackend
from tests.http.harness import Answer, Client, echo, make_site
from tests.oidcissuer import NOW
from tests.oidcprovider import CLIENT, METADATA, Provider, ProviderNetwork
from tests.ui.pagecase import AtOnce

URL = "https://issuer.example.com"
BINDING = "__Host-kubetwist-oidc-6443"
JSON = {"Content_Type": "application/json"}
HOSTILE = '<img src=x onerror=alert(1)>"'


class Browser:
    """The cookies of a browser, and its requests."""

    def __init__(self, site: Any) -> None:
        self.site = site
        self.cookies: dict[str, str] = {}
        self.key = "1"

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request of the page, and keep the cookies of the response."""
        if self.cookies:
            headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **headers}
        answer = Client(self.site).request(method, path, body, **{"X_Kubetwist_UI": self.key, **headers})
        for line in answer.headers.get("set-cookie", []):
            pair, _, attributes = line.partition("; ")
            assert attributes.startswith("Path=/; Max-Age="), line
            assert attributes.endswith("; Secure; HttpOnly; SameSite=Strict"), line
            name, _, value = pair.partition("=")
            if "Max-Age=0;" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def start(self) -> str:
        """Start a sign-in; return the URL of the provider."""
        answer = self.ask("POST", "/ui/oidc/start")
        assert answer.code == 200, answer
        return str(json.loads(answer.body)["location"])

    def finish(self, url: str) -> Answer:
        """Follow the redirects of the provider and of the server, and send the parameters to the server."""
        parts = urlsplit(url)
        moved = self.ask("GET", f"{parts.path}?{parts.query}", Sec_Fetch_Site="cross-site")
        assert moved.code == 303, moved
        location = moved.header("Location") or ""
        assert location.startswith("/ui/#oidc?"), location
        answer = self.ask("POST", "/ui/session", json.dumps({"oidc": location.partition("?")[2]}).encode(), **JSON)
        if answer.code == 201:
            self.key = json.loads(answer.body)["key"]
        return answer


class SignInCase(SynchronousTestCase):
    """A test case with a server that accepts the tokens of a provider."""

    def setUp(self) -> None:
        """Create both."""
        self.clock = Clock()
        self.provider = Provider(URL)
        self.provider.redirects = {"https://x/ui/oidc/callback"}
        self.network: Any = ProviderNetwork(self.provider)
        issuer = Issuer(URL, (CLIENT,))
        tokens = OIDCAuthenticator(self.network, self.clock, now=lambda: NOW)
        tokens.configure(
            [JWTAuthenticatorConfig(issuer, ClaimOrExpression("sub", "oidc:"), ClaimOrExpression("groups"))]
        )
        self.addCleanup(tokens.stop)
        union = AuthenticatorUnion([tokens])
        self.sessions = SessionStore(self.clock.seconds, lambda: NOW)
        authenticator = SessionAuthenticator(
            self.sessions,
            lambda: b"__Host-kubetwist-6443",
            lambda token: union.authenticate_token(token, ()),
            SignInLinks(self.clock.seconds),
        )
        client = OIDCClient(ClientSettings(CLIENT), lambda: [issuer], self.network, self.clock)
        authenticator.oidc = OIDCSignIn(client, lambda: BINDING.encode(), lambda: ("x",))
        self.authenticator = authenticator
        self.kept = RecordingBackend()
        policy = json.dumps(
            {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
        )
        auditor = Auditor(read_policy(policy.encode()), [self.kept], False, Counts())
        reactor: Any = AtOnce()
        self.site: Any = make_site(
            with_ui(echo, authenticator, reactor, oidc_button=f"Use {HOSTILE}", auditor=auditor), self.clock
        )
        self.site.requestFactory = audited_request(auditor)
        self.browser = Browser(self.site)

    def events(self) -> list[Any]:
        """Return the audit events."""
        return [json.loads(event.json()) for event in self.kept.events]


class SignInTests(SignInCase):
    """Sign-in with the provider."""

    def test_sign_in(self) -> None:
        """A user signs in; the session has the user of the ID token, and the cookie of the sign-in is removed."""
        self.provider.claims = {"groups": ["qa"]}
        url = self.browser.start()
        self.assertEqual(set(self.browser.cookies), {BINDING})
        answer = self.browser.finish(self.provider.authorize(url))
        self.assertEqual(answer.code, 201)
        user = json.loads(answer.body)["user"]
        self.assertEqual(user, {"username": "oidc:alice", "groups": ["qa", "system:authenticated"]})
        self.assertEqual(set(self.browser.cookies), {"__Host-kubetwist-6443"})
        self.assertEqual(json.loads(self.browser.ask("GET", "/ui/session").body), {"secondsLeft": 600})

    def test_audit(self) -> None:
        """A sign-in is audited as with a token, without codes, tokens and keys; so is a refused one."""
        url = self.provider.authorize(self.browser.start())
        answer = self.browser.finish(url)
        self.browser.finish(url)
        summary = [
            (one["stage"], one["verb"], one["requestURI"], one.get("user", {}).get("username")) for one in self.events()
        ]
        self.assertEqual(
            summary,
            [
                ("RequestReceived", "post", "/ui/session", "oidc:alice"),
                ("ResponseComplete", "post", "/ui/session", "oidc:alice"),
                ("ResponseStarted", "post", "/ui/session", None),
            ],
        )
        logged = json.dumps(self.events())
        secrets = [json.loads(answer.body)["key"], *self.browser.cookies.values(), url.partition("code=")[2][:20]]
        for secret in secrets:
            self.assertGreater(len(secret), 10)
            self.assertNotIn(secret, logged)

    def test_refresh_token(self) -> None:
        """The session has the refresh token, which no response contains."""
        self.provider.refreshes = True
        answer = self.browser.finish(self.provider.authorize(self.browser.start()))
        (refresh_token,) = self.provider._refresh_tokens
        (session,) = self.sessions._sessions.values()
        self.assertEqual(session.refresh_token, refresh_token)
        self.assertNotIn(refresh_token, answer.body.decode() + repr(answer.headers))

    def test_sign_out(self) -> None:
        """The page gets the URL for signing out at the provider, if there is one; other sites do not."""
        answer = self.browser.ask("POST", "/ui/oidc/end")
        self.assertEqual(
            (answer.code, json.loads(answer.body)["message"]), (503, "the provider has no page for signing out")
        )
        self.provider.document = {"end_session_endpoint": f"{URL}/end?a=b"}
        self.clock.advance(300)
        answer = self.browser.ask("POST", "/ui/oidc/end")
        self.assertEqual(json.loads(answer.body), {"location": f"{URL}/end?a=b&client_id={CLIENT}"})
        self.assertEqual(self.browser.cookies, {})
        self.assertEqual(self.browser.ask("POST", "/ui/oidc/end", Sec_Fetch_Site="cross-site").code, 400)

    def test_button(self) -> None:
        """The page has the text of the button, as text."""
        page = self.browser.ask("GET", "/ui/").body.decode()
        text = "Use &lt;img src=x onerror=alert(1)&gt;&quot;"
        self.assertIn(f'<meta name="oidc-button" content="{text}">', page)

    def test_cookie_not_forwarded(self) -> None:
        """The cookie of a sign-in is removed from requests for other handlers."""
        self.browser.start()
        fields = {b"cookie": [f"a=b; {BINDING}=x".encode()]}
        request: Any = type("Request", (), {"fields": fields, "method": b"GET"})()
        self.assertIsNone(self.authenticator.authenticate(request))
        self.assertEqual(request.fields, {b"cookie": [b"a=b"]})


class AttackTests(SignInCase):
    """What other sites, other users and the provider may try."""

    def refused(self, answer: Answer, text: str) -> None:
        """Check that a sign-in was refused, and that the cookie of the sign-in is removed."""
        self.assertEqual((answer.code, json.loads(answer.body)["message"]), (401, text))
        self.assertEqual(len(self.sessions), 0)
        self.assertNotIn(BINDING, self.browser.cookies)

    def test_cross_site_start(self) -> None:
        """Other sites cannot start a sign-in."""
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
            self.assertEqual(self.browser.ask("POST", "/ui/oidc/start", **headers).code, 400)
        self.assertEqual(Client(self.site).request("POST", "/ui/oidc/start").code, 400)
        self.assertEqual(self.browser.ask("GET", "/ui/oidc/start").code, 405)
        self.assertEqual(self.browser.cookies, {})

    def test_login_csrf(self) -> None:
        """The response for an attacker's browser does not sign another browser in, whether that has started or not."""
        text = "this sign-in was not started in this browser, or took longer than ten minutes"
        attacker = Browser(self.site)
        self.refused(self.browser.finish(self.provider.authorize(attacker.start(), "mallory")), text)
        self.browser.start()
        self.refused(self.browser.finish(self.provider.authorize(attacker.start(), "mallory")), text)
        self.assertEqual(self.provider.grants, [])

    def test_cross_site_session(self) -> None:
        """Other sites cannot send a response to the server."""
        url = self.provider.authorize(self.browser.start())
        body = json.dumps({"oidc": urlsplit(url).query}).encode()
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Content_Type": "text/plain"}):
            self.assertEqual(self.browser.ask("POST", "/ui/session", body, **{**JSON, **headers}).code, 400)
        self.assertEqual(self.browser.finish(url).code, 201)

    def test_replay(self) -> None:
        """A response is used once: its cookie is removed, and the provider refuses the code."""
        url = self.provider.authorize(self.browser.start())
        cookies = dict(self.browser.cookies)
        self.assertEqual(self.browser.finish(url).code, 201)
        for again in ({}, cookies):
            self.browser.cookies = dict(again)
            self.assertEqual(self.browser.finish(url).code, 401)
        self.assertEqual(len(self.sessions), 1)

    def test_cookie_twice(self) -> None:
        """Two cookies of the name, one of them from another domain, are refused."""
        url = self.provider.authorize(self.browser.start())
        body = json.dumps({"oidc": urlsplit(url).query}).encode()
        value = self.browser.cookies[BINDING]
        for cookies in (f"{BINDING}=x; {BINDING}={value}", f"{BINDING}={value}; {BINDING}={value}"):
            self.assertEqual(self.browser.ask("POST", "/ui/session", body, **JSON, Cookie=cookies).code, 401)

    def test_callback(self) -> None:
        """The callback redirects to the page only, and drops what is too long or cannot be in an address."""
        answer = self.browser.ask(
            "GET", "/ui/oidc/callback?code=1&state=//evil.example.com", Sec_Fetch_Site="cross-site"
        )
        self.assertEqual((answer.code, answer.body), (303, b""))
        self.assertEqual(answer.header("Location"), "/ui/#oidc?code=1&state=//evil.example.com")
        self.assertEqual(answer.header("Cache-Control"), "no-store")
        self.assertEqual(answer.header("Referrer-Policy"), "no-referrer")
        self.assertEqual(answer.header("Content-Security-Policy"), POLICY.decode())
        for query in ("code=" + "x" * 9000, 'code="', "code=\xe9", "code=1#x"):
            answer = self.browser.ask("GET", f"/ui/oidc/callback?{query}")
            self.assertEqual((answer.code, answer.header("Location")), (303, "/ui/"), query[:10])
        self.assertEqual(self.browser.ask("POST", "/ui/oidc/callback?code=1").code, 405)

    def test_host(self) -> None:
        """A host that does not belong to the server is refused, before the provider is asked."""
        answer = self.browser.ask("POST", "/ui/oidc/start", Host="evil.example.com")
        self.assertEqual(answer.code, 503)
        self.assertIn("--ui-external-url", json.loads(answer.body)["message"])
        self.assertEqual(self.browser.cookies, {})

    def test_unaccepted_token(self) -> None:
        """An ID token with a wrong signature, an expired one, and one without a user are refused."""
        for claims in ({"exp": NOW - 10}, {"sub": None}, {"nbf": NOW + 1000}):
            self.provider.claims = claims
            answer = self.browser.finish(self.provider.authorize(self.browser.start()))
            self.refused(answer, "the server does not accept the ID token of the provider")
        self.provider.claims = {}
        token = self.provider.token
        self.patch(self.provider, "token", lambda **claims: token(key="two", headers={"kid": "one"}, **claims))
        answer = self.browser.finish(self.provider.authorize(self.browser.start()))
        self.refused(answer, "the server does not accept the ID token of the provider")

    def test_provider_error(self) -> None:
        """An error of the provider is shown as text, with the state of the sign-in only."""
        state = self.provider.authorize(self.browser.start()).partition("state=")[2]
        hostile = "%3Cscript%3Ealert(1)%3C/script%3E%0d%0aX:y"
        path = f"https://x/ui/oidc/callback?error=access_denied&error_description={hostile}&state="
        answer = self.browser.finish(f"{path}{state}")
        self.refused(answer, "the provider refused the sign-in: access_denied: <script>alert(1)</script>  X:y")
        self.assertEqual(answer.header("Content-Type"), "application/json")
        answer = self.browser.finish(f"{path}other")
        self.assertNotIn("script", answer.body.decode())

    def test_provider_down(self) -> None:
        """Without the provider's discovery document there is an error, and no cookie."""
        self.provider.pages[METADATA] = (500, b"")
        answer = self.browser.ask("POST", "/ui/oidc/start")
        self.assertEqual(answer.code, 503)
        self.assertEqual(self.browser.cookies, {})

    def test_disconnected(self) -> None:
        """A browser that leaves while the provider is asked gets no session."""
        url = self.provider.authorize(self.browser.start())
        body = json.dumps({"oidc": urlsplit(url).query}).encode()
        self.network.held = held = Deferred()
        client = Client(self.site)
        cookie = f"{BINDING}={self.browser.cookies[BINDING]}"
        head = (
            f"POST /ui/session HTTP/1.1\r\nHost: x\r\nX-Kubetwist-UI: 1\r\nCookie: {cookie}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        client.send(head.encode() + body)
        self.assertEqual(client.answers(), [])
        client.channel.connectionLost(Failure(ConnectionLost()))
        held.callback(None)
        self.assertEqual(len(self.sessions), 0)

    def test_not_configured(self) -> None:
        """Without a provider there are no such endpoints."""
        self.authenticator.oidc = None
        reactor: Any = AtOnce()
        self.browser.site = make_site(with_ui(echo, self.authenticator, reactor, oidc_button="Button"), self.clock)
        self.assertEqual(self.browser.ask("POST", "/ui/oidc/start").code, 405)
        self.assertEqual(self.browser.ask("GET", "/ui/oidc/callback?code=1").code, 404)
        self.assertEqual(self.browser.ask("POST", "/ui/session", b'{"oidc": "code=1"}', **JSON).code, 400)
        self.assertIn('<meta name="oidc-button" content="">', self.browser.ask("GET", "/ui/").body.decode())


class UserTests(SignInCase):
    """The user of a session."""

    def test_found(self) -> None:
        """The session has the user, and each request is authenticated with the ID token."""
        self.browser.finish(self.provider.authorize(self.browser.start()))
        (session,) = self.sessions._sessions.values()
        self.assertEqual(session.user, UserInfo("oidc:alice", "", ("system:authenticated",), session.user.extra))
        self.assertEqual(session.token.count("."), 2)
