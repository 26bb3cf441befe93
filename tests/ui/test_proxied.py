"""Tests for L{kubetwist.ui.proxied}."""

from __future__ import annotations

import json
from typing import Any

from kubetwist.authentication.proxytickets import TICKET_LIFETIME
from kubetwist.http.request import KubeRequest

from .pagecase import PageTestCase

TARGET = "/api/v1/namespaces/default/services/web:80/proxy/"


class ProxiedTests(PageTestCase):
    """Tests for L{kubetwist.ui.proxied.ProxyEndpoint}."""

    def setUp(self) -> None:
        """Sign in."""
        super().setUp()
        self.headers = self.session()

    def serve(self, request: KubeRequest) -> None:
        """Answer with what the API sees of a request."""
        seen: Any = [
            request.user.name if request.user else None,
            request.uri.decode(),
            request.info.name,
            request.info.subresource,
            request.shown_prefix.decode(),
            sorted(name.decode() for name in request.fields),
        ]
        request.respond(200, json.dumps(seen).encode(), b"application/json")

    def issue(self, path: object = TARGET, **headers: str) -> Any:
        """Ask for a ticket; return the response."""
        return self.ask("POST", "/ui/proxy", json.dumps({"path": path}).encode(), **self.headers | headers)

    def path(self) -> str:
        """Return the path of a ticket."""
        answer = self.issue()
        self.assertEqual(answer.code, 201)
        path: str = json.loads(answer.body)["path"]
        return path

    def test_open(self) -> None:
        """A request with a ticket becomes a request to the target, as the user of the session."""
        path = self.path()
        self.assertRegex(path, r"^/ui/proxy/[\w-]{40,}/$")
        answer = self.ask("GET", f"{path}a/b?c=d")
        user, uri, name, subresource, shown, _ = json.loads(answer.body)
        self.assertEqual((user, uri, name, subresource), ("alice", f"{TARGET}a/b?c=d", "web:80", "proxy"))
        self.assertEqual(shown, path[:-1])
        self.assertEqual(answer.header("Access-Control-Allow-Origin"), "*")
        self.assertEqual(answer.header("Referrer-Policy"), "no-referrer")

    def test_methods(self) -> None:
        """Requests of an opaque origin are allowed, with any method, and their preflight too."""
        path = self.path()
        for site in ("cross-site", "same-origin"):
            answer = self.ask("POST", path, b"x", Origin="null", Sec_Fetch_Site=site, Content_Type="text/plain")
            self.assertEqual(answer.code, 200)
        wanted = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "x-a"}
        answer = self.ask("OPTIONS", path, Origin="null", **wanted)
        self.assertEqual((answer.code, answer.header("Access-Control-Allow-Headers")), (204, "x-a"))
        self.assertIn("PUT", answer.header("Access-Control-Allow-Methods") or "")

    def test_removed(self) -> None:
        """Other credentials, and the address of the page, are removed from the request."""
        secrets = {
            **self.headers,
            "Authorization": "Bearer good",
            "Impersonate_User": "root",
            "Referer": "https://x/ui",
        }
        answer = self.ask("GET", self.path(), Origin="null", X_Other="1", **secrets)
        *_, fields = json.loads(answer.body)
        self.assertEqual(fields, ["host", "x-other"])

    def test_unknown(self) -> None:
        """A ticket that is unknown or expired, or whose session has ended, is refused, also with other credentials."""
        path = self.path()
        for other in ("/ui/proxy/x/", "/ui/proxy//", path[:-1], path[:-2] + "/"):
            self.assertEqual(self.ask("GET", other, **self.headers).code, 404, other)
        self.site.reactor.advance(TICKET_LIFETIME)
        self.assertEqual(self.ask("GET", path).code, 404)
        path = self.path()
        self.ask("DELETE", "/ui/session", **self.headers)
        answer = self.ask("GET", path, Authorization="Bearer good")
        self.assertEqual((answer.code, answer.header("Cache-Control")), (404, "no-store"))

    def test_revoked(self) -> None:
        """The token of the session is authenticated again with each request."""
        path = self.path()
        self.finding = type(self.authenticate_token("bad"))(None)
        self.assertEqual(self.ask("GET", path).code, 401)

    def test_dots(self) -> None:
        """A path cannot lead out of the target."""
        path = self.path()
        for rest in ("..", "../secrets", "a/%2e%2e/b", "%2E./x", "./x", "a/..\\b", "..%5c?x", "a%2f..%2Fb"):
            self.assertEqual(self.ask("GET", path + rest).code, 404, rest)
        self.assertEqual(self.ask("GET", f"{path}a..b/.c?x=/../y").code, 200)

    def test_refused(self) -> None:
        """Tickets are issued to the page with a session only, and for the proxies of ports."""
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
            self.assertEqual(self.issue(**headers).code, 400)
        self.assertEqual(self.issue(X_Kubetwist_UI="x").code, 401)
        self.assertEqual(self.issue(Cookie="a=b").code, 401)
        self.assertEqual(self.ask("POST", "/ui/proxy", b"{}").code, 400)
        self.assertEqual(self.ask("GET", "/ui/proxy", **self.headers).code, 405)
        for path in (None, 1, "/api/v1/nodes/x:80/proxy/", TARGET + "../x"):
            self.assertEqual(self.issue(path).code, 400, path)
        self.assertEqual(self.ask("POST", "/ui/proxy", b"[", **self.headers).code, 400)
