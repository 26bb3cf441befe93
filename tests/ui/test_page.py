"""Tests for L{kubetwist.ui}, over connections in memory."""

from __future__ import annotations

import gzip
import json
import re

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.union import TokenAuthentication
from kubetwist.ui.page import POLICY, with_ui
from tests.http.harness import Client, make_site
from tests.ui.pagecase import COOKIE, JSON, AtOnce, FilesTestCase, PageTestCase


class FilesTests(FilesTestCase):
    """The files of the page, which need no authentication."""

    def test_api_clients(self) -> None:
        """Clients that do not accept HTML get the API's response at the paths of the pages."""
        for place in ("/ui", "/swagger-ui"):
            for accept in ("text/html", "text/*;q=0.5", "application/json, */*", ""):
                self.assertEqual(self.ask("GET", place, **({"Accept": accept} if accept else {})).code, 308)
            api = self.ask("GET", "/nowhere", Accept="application/json")
            answer = self.ask("GET", place, Accept="application/json")
            self.assertEqual((answer.code, answer.body), (api.code, api.body))

    def test_policy(self) -> None:
        """Everything below /ui has a strict content security policy, no sniffing, no referrer and no frames."""
        paths = ["/ui", "/ui/", "/ui/x", "/ui/session", f"{self.folder()}/app.js"]
        paths += ["/swagger-ui", "/swagger-ui/", "/swagger-ui/x", f"{self.folder('/swagger-ui')}/swagger/swagger.js"]
        for path in paths:
            answer = self.ask("GET", path)
            policy = answer.header("Content-Security-Policy") or ""
            for part in ("default-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "script-src 'self'"):
                self.assertIn(f"{part};", policy)
            self.assertIn("require-trusted-types-for 'script'; trusted-types 'none'", policy)
            self.assertNotIn("unsafe", policy)
            # The style sheet of Swagger UI has pictures in it; nothing else is looser there.
            self.assertEqual("data:" in policy, path.startswith("/swagger-ui"))
            self.assertEqual(policy.replace(" data:", ""), POLICY.decode())
            self.assertEqual(answer.header("X-Content-Type-Options"), "nosniff")
            self.assertEqual(answer.header("Referrer-Policy"), "no-referrer")
            self.assertEqual(answer.header("X-Frame-Options"), "DENY")

    def test_page(self) -> None:
        """A page is revalidated by its ETag at each request; all its files are cached forever."""
        for place in ("/ui", "/swagger-ui"):
            page = self.ask("GET", f"{place}/")
            self.assertEqual((page.code, page.header("Content-Type")), (200, "text/html; charset=utf-8"))
            self.assertEqual(page.header("Cache-Control"), "no-cache")
            again = self.ask("GET", f"{place}/", If_None_Match=page.header("ETag") or "")
            self.assertEqual((again.code, again.body), (304, b""))
            self.assertNotIn(b"{{", page.body)
            named = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
            self.assertGreater(len(named), 3)
            for path in named:
                answer = self.ask("GET", path)
                self.assertEqual(answer.code, 200, path)
                self.assertEqual(answer.header("Cache-Control"), "public, max-age=31536000, immutable")
            self.assertEqual(self.ask("GET", place).header("Location"), f"{place}/")

    def test_root(self) -> None:
        """/ redirects only clients that prefer HTML to the page."""
        answer = self.ask("GET", "/", Accept="text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
        self.assertEqual((answer.code, answer.header("Location")), (302, "/ui/"))
        for accept in ("*/*", "application/json", "application/json, text/html"):
            self.assertNotEqual(self.ask("GET", "/", Accept=accept).code, 302)

    def test_gzip(self) -> None:
        """Clients that accept gzip get the compressed content."""
        path = f"{self.folder()}/app.js"
        plain, packed = self.ask("GET", path), self.ask("GET", path, Accept_Encoding="br, gzip;q=1")
        self.assertEqual(packed.header("Content-Encoding"), "gzip")
        self.assertEqual(gzip.decompress(packed.body), plain.body)
        self.assertEqual(packed.header("Vary"), "Accept-Encoding")
        self.assertIsNone(plain.header("Content-Encoding"))

    def test_unknown_paths(self) -> None:
        """Other paths, files and methods below /ui are rejected, and so are paths with the same prefix."""
        folder = self.folder()
        for path in ("/ui/x", f"{folder}/../page.py", f"{folder}/%2e%2e/page.py", f"{folder}/", "/ui/0/app.js"):
            self.assertEqual(self.ask("GET", path).code, 404, path)
        swagger = self.folder("/swagger-ui")
        for path in (f"{folder}/swagger/swagger.js", f"{swagger}/app.js", f"{swagger}/swagger/index.html"):
            self.assertEqual(self.ask("GET", path).code, 404, path)
        for place in ("/ui/", "/swagger-ui/"):
            self.assertEqual(self.ask("POST", place).code, 405)
            self.assertEqual(self.ask("HEAD", place).body, b"")
        for path in ("/uix", "/uix/", "/u", "/swagger-uix", "/swagger-ui.json", "/swagger", "//ui/"):
            self.assertEqual(self.ask("GET", path).code, 401, path)

    def test_without_swagger_ui(self) -> None:
        """Swagger UI can be disabled; then the page has no link to it."""
        self.assertIn(b'name="swagger-ui" content="yes"', self.ask("GET", "/ui/").body)
        self.site = make_site(with_ui(self.handler, self.authenticator, AtOnce(), swagger_ui=False), Clock())
        self.assertEqual(self.ask("GET", "/swagger-ui/").code, 401)
        self.assertIn(b'name="swagger-ui" content="no"', self.ask("GET", "/ui/").body)


class SessionTests(PageTestCase):
    """Sign-in and sign-out."""

    def test_sign_in(self) -> None:
        """A sign-in returns a key and a cookie that is hidden from scripts and not sent by other sites."""
        answer = self.sign_in()
        self.assertEqual(answer.code, 201)
        self.assertEqual(json.loads(answer.body)["user"], {"username": "alice", "groups": ["qa"]})
        self.assertRegex(
            answer.header("Set-Cookie") or "",
            rf"^{COOKIE}=[\w-]{{43}}; Path=/; Max-Age=43200; Secure; HttpOnly; SameSite=Strict$",
        )
        self.assertEqual(answer.header("Cache-Control"), "no-store")
        self.assertNotIn(b"good", answer.body)

    def test_authentication(self) -> None:
        """The cookie and the key together authenticate; the cookie alone or with another key does not."""
        session = self.session()
        self.assertEqual(self.ask("GET", "/api", **session).code, 200)
        self.assertEqual(self.ask("POST", "/api", b"x", **session).code, 200)
        for lacking in ({"Cookie": session["Cookie"]}, {**session, "X_Kubetwist_UI": "1"}):
            for method in ("GET", "POST", "DELETE"):
                answer = self.ask(method, "/api", **lacking)
                self.assertEqual(answer.code, 401)
                self.assertIsNone(answer.header("Access-Control-Allow-Origin"))

    def test_forgery(self) -> None:
        """Another site cannot make a browser sign in, use a session, or sign out."""
        session = self.session()
        for site in ("cross-site", "same-site"):
            self.assertEqual(self.sign_in(Sec_Fetch_Site=site).code, 400)
            self.assertEqual(self.ask("POST", "/api", b"x", **session, Sec_Fetch_Site=site).code, 401)
            self.assertEqual(self.ask("GET", "/api", **session, Sec_Fetch_Site=site).code, 401)
            self.assertEqual(self.ask("DELETE", "/ui/session", **session, Sec_Fetch_Site=site).code, 400)
        body = b'{"token":"good"}'
        self.assertEqual(self.ask("POST", "/ui/session", body, **JSON).code, 400)
        answer = self.ask("POST", "/ui/session", body, Content_Type="text/plain", X_Kubetwist_UI="1")
        self.assertEqual((answer.code, answer.header("Set-Cookie")), (400, None))
        # What a browser asks before it sends such a header to another origin.
        asked = self.ask(
            "OPTIONS", "/api", Origin="https://evil.example", Access_Control_Request_Headers="x-kubetwist-ui"
        )
        self.assertIsNone(asked.header("Access-Control-Allow-Headers"))
        self.assertEqual(self.ask("GET", "/api", **session).code, 200)

    def test_sign_out(self) -> None:
        """A sign-out ends the session and clears the cookie."""
        session = self.session()
        answer = self.ask("DELETE", "/ui/session", **session)
        self.assertEqual(answer.code, 204)
        self.assertIn(f"{COOKIE}=; Path=/; Max-Age=0;", answer.header("Set-Cookie") or "")
        self.assertEqual(self.ask("GET", "/api", **session).code, 401)

    def test_end(self) -> None:
        """The page learns the seconds until its session ends, with cookie and key only."""
        session = self.session()
        answer = self.ask("GET", "/ui/session", **session)
        self.assertEqual((answer.code, json.loads(answer.body)), (200, {"secondsLeft": 7200}))
        self.assertEqual(answer.header("Cache-Control"), "no-store")
        for lacking in ({"Cookie": session["Cookie"]}, {"X_Kubetwist_UI": session["X_Kubetwist_UI"]}):
            self.assertIn(self.ask("GET", "/ui/session", **lacking).code, (400, 401))
        self.assertEqual(self.ask("GET", "/ui/session", **session, Sec_Fetch_Site="cross-site").code, 400)

    def test_sign_in_again(self) -> None:
        """A sign-in with a session ends that session, if it succeeds."""
        session = self.session()
        self.assertEqual(self.sign_in("bad", **session).code, 401)
        self.assertEqual(self.ask("GET", "/ui/session", **session).code, 200)
        self.assertEqual(self.sign_in(**session).code, 201)
        self.assertEqual(self.ask("GET", "/ui/session", **session).code, 401)

    def test_bad(self) -> None:
        """An invalid token is a 401, and a malformed one a 400; neither begins a session."""
        self.assertEqual(self.sign_in("bad").code, 401)
        for body in (b"", b"[]", b"{}", b'{"token":1}', b'{"token":" "}', b'{"token":"a\\nb"}', b"\xff"):
            answer = self.ask("POST", "/ui/session", body, **JSON, X_Kubetwist_UI="1")
            self.assertEqual((answer.code, answer.header("Set-Cookie")), (400, None), body)
        self.assertEqual(self.sign_in("x" * 100_000).code, 413)
        self.assertEqual(self.ask("GET", "/ui/session", X_Kubetwist_UI="1").code, 401)
        self.assertEqual(self.ask("PUT", "/ui/session", X_Kubetwist_UI="1").code, 405)

    def test_slow(self) -> None:
        """The authentication of the token may be asynchronous."""
        self.finding = slow = Deferred()
        client = Client(self.site)
        client.send(
            b"POST /ui/session HTTP/1.1\r\nHost: x\r\nX-Kubetwist-UI: 1\r\nContent-Type: application/json\r\n"
            b'Content-Length: 13\r\n\r\n{"token":"t"}'
        )
        self.assertEqual(client.answers(), [])
        slow.callback(TokenAuthentication(UserInfo("bob")))
        (answer,) = client.answers()
        self.assertEqual(answer.code, 201)
