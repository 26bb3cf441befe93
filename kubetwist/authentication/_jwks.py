"""
JSON Web Key Sets of OpenID Connect issuers, located by discovery and cached.

Keys are fetched again when a token has an unknown key id. Only the request with such a token waits for the fetch. There
is one fetch at a time and issuer, and at most one in L{RETRY_INTERVAL} seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.times import posix_now
from .configuration import Issuer
from .errors import AuthenticationFailed

if TYPE_CHECKING:
    from ..client.factory import ClientFactory

#: Minimum number of seconds between two discovery attempts, and between two fetches of the keys.
RETRY_INTERVAL: Final = 10.0
#: Seconds after which keys are refreshed; the old keys stay in use until the fetch has succeeded.
REFRESH_INTERVAL: Final = 300.0
#: Timeout of a fetch, in seconds.
_TIMEOUT: Final = 30.0
#: Maximum size of a response, in bytes.
_MAX_RESPONSE_BYTES: Final = 1024 * 1024
#: Maximum number of keys of an issuer.
_MAX_KEYS: Final = 100
#: Minimum and maximum size of an RSA key in bits; larger keys make verification slow.
_RSA_BITS: Final = (1024, 8192)
WELL_KNOWN: Final = "/.well-known/openid-configuration"
_CURVES: Final = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}


class Key(NamedTuple):
    """
    A public key of an issuer.

    @ivar key_id: The key ID (C{kid}); C{""} for none.
    @ivar algorithms: The signature algorithms that can use the key.
    @ivar key: The key object of C{cryptography}.
    """

    key_id: str
    algorithms: frozenset[str]
    key: Any


class Provider:
    """The keys of one issuer."""

    _log = Logger()

    def __init__(self, issuer: Issuer, outgoing: ClientFactory, reactor: IReactorTime) -> None:
        """
        @param outgoing: L{kubetwist.client.factory.ClientFactory}.
        @param reactor: The clock for retries.
        """
        self.issuer = issuer
        self.outgoing = outgoing
        self._reactor = reactor
        self._jwks_uri = ""
        self._keys: tuple[Key, ...] | None = None
        self._last_attempt: float | None = None
        self._waiting: list[Deferred[None]] | None = None
        self._timer: Any = None
        self._stopped = False
        #: Times of the last successful and failed fetch, by C{"success"} and C{"failure"}.
        self.fetched_at: dict[str, float] = {}
        #: Called when the keys have changed.
        self.changed: Callable[[], object] = lambda: None

    @property
    def ready(self) -> bool:
        """Return whether the keys were fetched."""
        return self._keys is not None

    def start(self) -> None:
        """Fetch the keys; retry every L{RETRY_INTERVAL} seconds until a fetch succeeds."""
        self._timer = None
        self.fetch().addCallback(lambda _: self._schedule_retry())

    def stop(self) -> None:
        """Cancel the retry and start no further fetch. Idempotent."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule_retry(self) -> None:
        if not self.ready and not self._stopped and self._timer is None:
            self._timer = self._reactor.callLater(RETRY_INTERVAL, self.start)

    def matching_keys(self, key_id: str, algorithm: str) -> Sequence[Key]:
        """
        Return the keys that may have signed a token; start a refresh if the keys are old.

        @param key_id: The C{kid} of the token; C{""} for any key.
        @param algorithm: The C{alg} of the token.
        """
        keys = self._keys or ()
        if self._last_attempt is not None and self._reactor.seconds() - self._last_attempt > REFRESH_INTERVAL:
            self.fetch()
        return [key for key in keys if algorithm in key.algorithms and (not key_id or key.key_id == key_id)]

    @property
    def may_fetch(self) -> bool:
        """Return whether a fetch is in flight or may start."""
        return self._waiting is not None or (
            not self._stopped
            and (self._last_attempt is None or self._reactor.seconds() - self._last_attempt >= RETRY_INTERVAL)
        )

    def fetch(self) -> Deferred[None]:
        """
        Fetch the keys; concurrent calls share one fetch.

        @return: Fires when the fetch has ended; a failure is logged.
        """
        done: Deferred[None] = Deferred()
        if self._waiting is not None:
            self._waiting.append(done)
            return done
        self._waiting = [done]
        self._last_attempt = self._reactor.seconds()
        Deferred.fromCoroutine(self._fetch()).addErrback(self._failed).addBoth(self._fetched)
        return done

    def _fetched(self, _: object) -> None:
        waiting, self._waiting = self._waiting or [], None
        for done in waiting:
            if not done.called:
                done.callback(None)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("fetching the keys of {issuer} failed", failure, issuer=self.issuer.url)

    async def _fetch(self) -> None:
        from ..client.errors import (
            CallError,
            InvalidRESTConfig,
        )

        try:
            if not self._jwks_uri:
                self._jwks_uri = jwks_uri(await self._get(self._discovery_url()), self.issuer.url)
            keys = parse_jwks(await self._get(self._jwks_uri))
        except (AuthenticationFailed, CallError, InvalidRESTConfig) as error:
            self.fetched_at["failure"] = posix_now()
            self._log.warn(
                "oidc: cannot get the keys of the issuer {issuer}: {reason}",
                issuer=self.issuer.url,
                reason=str(error),
            )
            return
        self.fetched_at["success"] = posix_now()
        before, self._keys = self._keys, keys
        if before is None:
            self._log.info("oidc: fetched the keys of the issuer {issuer}", issuer=self.issuer.url)
        elif [(key.key_id, key.key.public_numbers()) for key in before] != [
            (key.key_id, key.key.public_numbers()) for key in keys
        ]:
            self._log.info("oidc: the keys of the issuer {issuer} have changed", issuer=self.issuer.url)
            self.changed()

    def _discovery_url(self) -> str:
        return self.issuer.discovery or self.issuer.url.removesuffix("/") + WELL_KNOWN

    async def _get(self, url: str) -> JSONValue:
        return decoded(await get(self.outgoing, url, self.issuer.authorities), url)


async def get(
    outgoing: ClientFactory,
    url: str,
    authorities: bytes,
    token: str = "",
    guarded: bool = False,
    timeout: float = _TIMEOUT,
) -> bytes:
    """
    Fetch a document.

    @param outgoing: The factory of HTTP clients.
    @param url: The URL.
    @param authorities: CA certificates in PEM; C{b""} for the CAs of the system.
    @param token: A bearer token; C{""} for none.
    @param guarded: Whether addresses of this machine and its network are rejected.
    @param timeout: The timeout in seconds.
    @raise AuthenticationFailed: The server did not return the document.
    @raise CallError: The call failed.
    """
    from ..client.restconfig import RESTConfig

    url, _, query = url.partition("?")
    settings = RESTConfig(url=url, ca=authorities, token=token, deny_internal=guarded)
    client = outgoing.client(settings, limit=_MAX_RESPONSE_BYTES)
    try:
        response = await client.get(timeout=timeout, accept="*/*", query=query)
    finally:
        await client.close()
    if not 200 <= response.code < 300:
        raise AuthenticationFailed(f"{url} answered {response.code}")
    body: bytes = response.body
    return body


def decoded(body: bytes, url: str) -> Mapping[str, JSONValue]:
    """
    Decode a response that must be a JSON object.

    @raise AuthenticationFailed: It is not a JSON object.
    """
    try:
        value = orjson.loads(body)
    except ValueError as error:
        raise AuthenticationFailed(f"{url} did not answer with JSON: {error}") from None
    if not isinstance(value, dict):
        raise AuthenticationFailed(f"{url} did not answer with a JSON object")
    return value


def jwks_uri(document: Mapping[str, JSONValue], issuer: str) -> str:
    """
    Return the URL of the JSON Web Key Set from a discovery document.

    @raise AuthenticationFailed: The document is for another issuer or has no URL.
    """
    actual = document.get("issuer")
    if actual != issuer:
        text = f"expected {quoted(issuer)} got {quoted(actual) if isinstance(actual, str) else quoted('')}"
        raise AuthenticationFailed(f"oidc: issuer did not match the issuer returned by provider, {text}")
    url = document.get("jwks_uri")
    if not isinstance(url, str) or not url:
        raise AuthenticationFailed("provider did not return JWKS URL")
    if not url.startswith("https://"):
        raise AuthenticationFailed(f"the JWKS URL {quoted(url)} is not https")
    return url


def parse_jwks(document: Mapping[str, JSONValue]) -> tuple[Key, ...]:
    """
    Return the keys of a JSON Web Key Set that can verify tokens; other keys are skipped.

    @raise AuthenticationFailed: The document is not a key set or has too many keys.
    """
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise AuthenticationFailed("the JWKS has no keys")
    if len(listed) > _MAX_KEYS:
        raise AuthenticationFailed(f"the JWKS has more than {_MAX_KEYS} keys")
    keys = []
    for one in listed:
        key = _read_key(one) if isinstance(one, dict) and one.get("use") in (None, "sig") else None
        if key is not None:
            keys.append(key)
    return tuple(keys)


def _read_key(document: Mapping[str, JSONValue]) -> Key | None:
    """Return a key of a JSON Web Key Set; L{None} if it is invalid, or its type or size is not supported."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm
    from jwt.exceptions import PyJWTError

    kind = document.get("kty")
    if kind not in ("RSA", "EC"):
        return None
    algorithm: Any = RSAAlgorithm if kind == "RSA" else ECAlgorithm
    public = {name: document[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in document}
    try:
        key = algorithm.from_jwk(public)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if isinstance(key, rsa.RSAPublicKey):
        if not _RSA_BITS[0] <= key.key_size <= _RSA_BITS[1] or key.public_numbers().e.bit_length() > 32:
            return None
        algorithms = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    elif isinstance(key, ec.EllipticCurvePublicKey):
        algorithms = {name for name, curve in _CURVES.items() if curve == key.curve.name}
    else:
        return None
    algorithm_of_key = document.get("alg")
    if algorithm_of_key is not None:
        algorithms &= {algorithm_of_key} if isinstance(algorithm_of_key, str) else set()
    key_id = document.get("kid")
    return Key(key_id if isinstance(key_id, str) else "", frozenset(algorithms), key)
