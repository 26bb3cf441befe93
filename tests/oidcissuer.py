"""An OpenID Connect issuer and a fake network, for tests of its tokens."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from twisted.internet.defer import Deferred

from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response

NOW = 1_800_000_000
KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("one", "two")}
CURVE = ec.generate_private_key(ec.SECP256R1())


class Issuer:
    """
    Issues tokens and publishes its keys.

    @ivar keys: The published keys by id.
    @ivar pages: Further responses by path: code and body.
    @ivar asked: The requested paths.
    """

    def __init__(self, url: str = "https://issuer.example.com", *keys: str) -> None:
        self.url = url
        self.keys: dict[str, Any] = {name: KEYS[name] for name in keys or ("one",)}
        self.pages: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.issuer_url = url

    def token(self, key: str = "one", algorithm: str = "RS256", headers: Any = None, **changes: Any) -> str:
        """Return a token with replaced claims; L{None} omits a claim."""
        claims = {"iss": self.url, "aud": "me", "sub": "alice", "exp": NOW + 600, "iat": NOW, **changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        signer = CURVE if algorithm.startswith("ES") else KEYS[key]
        return jwt.encode(claims, signer, algorithm=algorithm, headers={"kid": key} if headers is None else headers)

    def jwks(self) -> list[dict[str, Any]]:
        """Return the published key set."""
        found = []
        for name, key in self.keys.items():
            made: Any = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
            found.append({"kid": name, "use": "sig", **json.loads(made.to_jwk(key.public_key()))})
        return found

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the response for a path."""
        self.asked.append(path)
        if path in self.pages:
            return self.pages[path]
        if path == "/.well-known/openid-configuration":
            document: Any = {"issuer": self.issuer_url, "jwks_uri": f"{self.url}/keys?v=1"}
        elif path == "/keys":
            document = {"keys": self.jwks()}
        else:
            return 404, b"not found"
        return 200, json.dumps(document).encode()


class Network:
    """
    Fake of L{kubetwist.client.factory.ClientFactory}.

    @ivar calls: The settings and the query of each call.
    @ivar held: Fires before calls are answered; L{None} answers immediately.
    """

    def __init__(self, *issuers: Issuer) -> None:
        self.issuers = {urlsplit(issuer.url).netloc: issuer for issuer in issuers}
        self.calls: list[tuple[Any, str]] = []
        self.held: Deferred[None] | None = None

    def client(self, settings: Any, *, limit: int) -> Network.Client:
        """Return a client of the issuers."""
        return Network.Client(self, settings)

    class Client:
        """Client of one URL."""

        def __init__(self, network: Network, settings: Any) -> None:
            self._network = network
            self._settings = settings

        async def get(self, *, timeout: float, accept: str, query: str = "") -> Response:
            """See L{kubetwist.client.httpclient.WebhookClient.get}."""
            network = self._network
            network.calls.append((self._settings, query))
            if network.held is not None:
                await network.held
            parts = urlsplit(self._settings.url)
            issuer = network.issuers.get(parts.netloc)
            if issuer is None:
                raise CallError("get", self._settings.url, "no such host")
            code, body = issuer.answer(parts.path)
            return Response(code, {}, body)

        async def close(self) -> None:
            """Do nothing."""
