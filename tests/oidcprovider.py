"""An OpenID Connect provider for tests: it checks what a provider must check, and records its requests."""

from __future__ import annotations

import hmac
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

from kubetwist.client.httpclient import Response
from tests.oidcissuer import NOW, Issuer, Network

CLIENT = "me"
METADATA = "/.well-known/openid-configuration"


class Provider(Issuer):
    """
    An issuer with an authorization endpoint and a token endpoint.

    @ivar secret: The secret of the client; C{""} for a public client.
    @ivar redirects: The registered redirect URIs; empty for any.
    @ivar lifetime: Seconds until ID tokens expire.
    @ivar refreshes: Whether refresh tokens are issued; they rotate.
    @ivar document: Changes of the discovery document.
    @ivar claims: Changes of the claims of ID tokens.
    @ivar grants: The types of the grants that were requested.
    @ivar authorizations: The headers C{Authorization} of these requests.
    @ivar override: Replaces the response of the token endpoint: code and body.
    """

    def __init__(self, url: str = "https://issuer.example.com", now: Callable[[], float] = lambda: NOW) -> None:
        super().__init__(url)
        self._now = now
        self.secret = ""
        self.redirects: set[str] = set()
        self.lifetime = 600
        self.refreshes = False
        self.document: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.grants: list[str] = []
        self.authorizations: list[str] = []
        self.override: tuple[int, bytes] | None = None
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh_tokens: dict[str, str] = {}

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the response for a path."""
        if path == METADATA and path not in self.pages:
            self.asked.append(path)
            document = {
                "issuer": self.issuer_url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                **self.document,
            }
            return 200, json.dumps({key: value for key, value in document.items() if value is not None}).encode()
        return super().answer(path)

    def authorize(self, url: str, user: str = "alice", **more: str) -> str:
        """
        Sign a user in.

        @param url: The URL that the browser requests.
        @param more: Further parameters of the response.
        @return: The URL to which the browser is redirected.
        """
        parameters = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
        assert url.startswith(f"{self.url}/authorize?"), url
        assert parameters["response_type"] == "code" and parameters["client_id"] == CLIENT, parameters
        assert parameters["code_challenge_method"] == "S256" and "openid" in parameters["scope"].split(), parameters
        assert not self.redirects or parameters["redirect_uri"] in self.redirects, parameters
        code = token_urlsafe(24)
        self._codes[code] = {**parameters, "user": user}
        return f"{parameters['redirect_uri']}?{urlencode({'code': code, 'state': parameters['state'], **more})}"

    def grant(self, body: bytes, authorization: str = "") -> tuple[int, bytes]:
        """Return the response of the token endpoint."""
        form = {key: values[0] for key, values in parse_qs(body.decode(), strict_parsing=True).items()}
        self.grants.append(form["grant_type"])
        self.authorizations.append(authorization)
        if self.override is not None:
            return self.override
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        if authorization:
            both = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            client_id, secret = unquote_plus(both[0]), unquote_plus(both[2])
        if client_id != CLIENT or not hmac.compare_digest(secret, self.secret):
            return 401, b'{"error": "invalid_client"}'
        if form["grant_type"] == "refresh_token":
            user = self._refresh_tokens.pop(form["refresh_token"], None)
            return self._tokens(user, None) if user else (400, b'{"error": "invalid_grant"}')
        asked = self._codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"] or not verifies(form, asked):
            return 400, b'{"error": "invalid_grant", "error_description": "the code is not valid"}'
        return self._tokens(asked["user"], asked["nonce"])

    def _tokens(self, user: str, nonce: str | None) -> tuple[int, bytes]:
        now = int(self._now())
        claims = {"sub": user, "nonce": nonce, "iat": now, "exp": now + self.lifetime, "jti": token_urlsafe(8)}
        content: dict[str, Any] = {"token_type": "Bearer", "access_token": "opaque", "expires_in": self.lifetime}
        content["id_token"] = self.token(**{**claims, **self.claims})
        if self.refreshes:
            refresh_token = content["refresh_token"] = token_urlsafe(24)
            self._refresh_tokens[refresh_token] = user
        return 200, json.dumps(content).encode()


def verifies(form: Mapping[str, str], asked: Mapping[str, str]) -> bool:
    """Return whether the PKCE verifier belongs to the challenge."""
    digest = sha256(form.get("code_verifier", "").encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]


class ProviderNetwork(Network):
    """A fake network with providers."""

    def client(self, settings: Any, *, limit: int) -> ProviderNetwork.Client:
        """Return a client of the providers."""
        client = ProviderNetwork.Client(self, settings)
        client.limit = limit
        return client

    class Client(Network.Client):
        """
        Client of one URL.

        @ivar limit: The maximum size of a response.
        """

        limit = 0

        async def fetch(
            self, path: str, *, timeout: float, method: str, query: str, body: bytes, headers: Mapping[str, list[str]]
        ) -> Response:
            """See L{kubetwist.client.httpclient.WebhookClient.fetch}."""
            network = self._network
            assert 0 < timeout <= 10 and 0 < self.limit <= 256 * 1024, (
                "a browser waits, and responses are kept in memory"
            )
            network.calls.append((self._settings, query))
            if network.held is not None:
                await network.held
            provider: Any = network.issuers[urlsplit(self._settings.url).netloc]
            assert (method, path) == ("POST", "/token")
            code, content = provider.grant(body, headers.get("Authorization", [""])[0])
            return Response(code, {}, content)
