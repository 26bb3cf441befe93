"""
Token authentication by a webhook with C{TokenReview}s; results are cached.

@see: kubernetes/apiserver, C{plugin/pkg/authenticator/token/webhook} and C{pkg/authentication/token/cache}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from os import urandom
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

import orjson
from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject, UserInfo
from ..client.caching import ExpiringCache
from ..client.httpclient import Response
from ..client.responses import raise_for_status
from ..client.retrying import (
    DEFAULT_RETRY_BACKOFF,
    Backoff,
    with_backoff,
)
from ..client.reviews import review_status
from ..client.singleflight import SingleFlight
from ..interfaces import IAuthenticator
from .bearer import bearer_token
from .errors import AuthenticationFailed
from .metrics import TokenMetrics
from .union import TokenOnlyRequest, add_authenticated_group

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

#: Maximum number of cached results, for valid and invalid tokens.
MAX_CACHE_ENTRIES: Final = 32768
#: Timeout in seconds, of one attempt and of all attempts.
TIMEOUT: Final = 30.0


class WebhookClientProtocol(Protocol):
    """The part of a webhook client that the authenticator uses."""

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """@see: L{kubetwist.client.httpclient.WebhookClient.post}."""


@frozen
class _ReviewResult:
    """
    The result of a TokenReview.

    @ivar user: The user; L{None} if the token is not authenticated.
    @ivar audiences: The requested audiences for which the token is valid; L{None} if none were requested.
    @ivar error: The error of the webhook; C{""} for none.
    """

    user: UserInfo | None = None
    audiences: tuple[str, ...] | None = None
    error: str = ""


_NOT_AUTHENTICATED: Final = _ReviewResult()


@implementer(IAuthenticator)
class WebhookTokenAuthenticator:
    """Authenticates tokens by a webhook."""

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        client: WebhookClientProtocol,
        audiences: Sequence[str],
        *,
        version: str = "v1",
        ttl: float = 120.0,
        backoff: Backoff = DEFAULT_RETRY_BACKOFF,
    ) -> None:
        """
        @param reactor: The clock.
        @param client: The client of the webhook.
        @param audiences: The audiences of this server, which are used if the webhook returns no audiences.
        @param version: The version of C{authentication.k8s.io}: C{"v1"} or C{"v1beta1"}.
        @param ttl: The TTL of cached results in seconds; 0 for no cache.
        @param backoff: The delays between attempts.
        """
        self._reactor = reactor
        self._client = client
        self._audiences = tuple(audiences)
        self._api_version = f"authentication.k8s.io/{version}"
        self._ttl = ttl
        self._backoff = backoff
        self._cache: ExpiringCache[bytes, _ReviewResult] = ExpiringCache(MAX_CACHE_ENTRIES, reactor.seconds)
        self._calls: SingleFlight[bytes, _ReviewResult] = SingleFlight()
        # The key of the digest is secret, so that clients cannot construct collisions.
        self._secret = urandom(32)
        self.metrics = TokenMetrics()

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        requested = request.requested_audiences if isinstance(request, TokenOnlyRequest) else self._audiences
        began = perf_counter()
        key = self._key(token, requested)
        result = self._cache.get(key)
        if result is not None:
            self.metrics.observe_lookup(True, perf_counter() - began)
            return self._user_from_result(result, request)
        reviewing = self._calls.do(key, lambda: self._review_with_metrics(key, token, requested))

        def on_result(result: _ReviewResult) -> UserInfo | None:
            self.metrics.observe_lookup(False, perf_counter() - began)
            return self._user_from_result(result, request)

        return reviewing.addCallback(on_result)

    async def _review_with_metrics(self, key: bytes, token: bytes, requested: Sequence[str]) -> _ReviewResult:
        metrics = self.metrics
        metrics.in_flight += 1
        fetched = "error"
        try:
            result = await self._review(key, token, requested)
            fetched = "error" if result.error else "ok"
        finally:
            metrics.in_flight -= 1
            metrics.fetched[fetched] += 1
        return result

    def _key(self, token: bytes, audiences: Sequence[str]) -> bytes:
        digest = blake2b(digest_size=32, key=self._secret)
        for part in (token, *(audience.encode("utf-8", "surrogatepass") for audience in audiences)):
            # With the length, so that the boundaries of the parts are unambiguous.
            digest.update(b"%d:%b" % (len(part), part))
        return digest.digest()

    def _user_from_result(self, result: _ReviewResult, request: IAuthenticationRequest) -> UserInfo | None:
        if result.error:
            raise AuthenticationFailed(result.error)
        if result.user is not None and isinstance(request, TokenOnlyRequest):
            request.granted_audiences = result.audiences
        return result.user

    async def _review(self, key: bytes, token: bytes, requested: Sequence[str]) -> _ReviewResult:
        spec: JSONObject = {"token": token.decode("utf-8", "replace")}
        if requested:
            spec["audiences"] = list(requested)
        review = {
            "kind": "TokenReview",
            "apiVersion": self._api_version,
            "metadata": {},
            "spec": spec,
            "status": {"user": {}},
        }
        body = orjson.dumps(review)
        posting: Deferred[JSONObject] = Deferred.fromCoroutine(
            with_backoff(self._reactor, lambda: self._post(body), self._backoff)
        )
        timer = self._reactor.callLater(TIMEOUT, posting.cancel)
        try:
            status = await posting
            result = self._result(status, requested)
        except AuthenticationFailed:
            raise
        except Exception as error:
            reason = "context deadline exceeded" if not timer.active() else str(error)
            self._log.error("Failed to make webhook authenticator request: {reason}", reason=reason)
            raise AuthenticationFailed(reason) from None
        finally:
            if timer.active():
                timer.cancel()
        if not result.error:
            self._cache.put(key, result, self._ttl)
        return result

    async def _post(self, body: bytes) -> JSONObject:
        response = await self._client.post(body, timeout=TIMEOUT)
        raise_for_status(response, quote=False)
        return review_status(response, "TokenReview", self._api_version)

    def _result(self, status: JSONObject, requested: Sequence[str]) -> _ReviewResult:
        audiences = None
        if requested:
            granted = _strings(status.get("audiences"), "audiences") or self._audiences
            audiences = tuple(audience for audience in requested if audience in granted)
            if not audiences:
                return _NOT_AUTHENTICATED
        if status.get("authenticated") is not True:
            error = status.get("error")
            return _ReviewResult(error=error) if isinstance(error, str) else _NOT_AUTHENTICATED
        return _ReviewResult(_user(status.get("user")), audiences)


def _user(value: JSONValue) -> UserInfo:
    user = {} if value is None else value
    if not isinstance(user, Mapping):
        raise ValueError("the user in the TokenReview is not an object")
    extra = user.get("extra")
    extra = {} if extra is None else extra
    if not isinstance(extra, Mapping):
        raise ValueError("extra in the TokenReview is not an object")
    return add_authenticated_group(
        UserInfo(
            _string(user.get("username"), "username"),
            _string(user.get("uid"), "uid"),
            _strings(user.get("groups"), "groups"),
            {str(name): _strings(values, "extra") for name, values in extra.items()},
        )
    )


def _string(value: JSONValue, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{field} in the TokenReview is not a string")
    return value


def _strings(value: JSONValue, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{field} in the TokenReview is not a list of strings")
    return tuple(value)


def make(options: FlagValues, server: AuthenticationContext) -> WebhookTokenAuthenticator | None:
    """
    Create the authenticator of C{--authentication-token-webhook-config-file}; L{None} without the flag.

    @raise InvalidRESTConfig: The file cannot be used.
    """
    path = options["authentication-token-webhook-config-file"]
    if not path:
        return None
    from ..client.kubeconfigclient import KubeconfigClient

    client = KubeconfigClient(server.outgoing, server.files, path, "--authentication-token-webhook-config-file")
    return WebhookTokenAuthenticator(
        server.reactor,
        client,
        options["api-audiences"] or options["service-account-issuer"],
        version=options["authentication-token-webhook-version"],
        ttl=options["authentication-token-webhook-cache-ttl"],
    )
