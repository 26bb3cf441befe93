"""
Authentication and authorization, delegated to the Kubernetes API server in front.

The aggregator's proxy sends the user in headers, with a client certificate whose CA is in a ConfigMap. Other
credentials are sent to the API server for review.

@see: kubernetes/apiserver, C{pkg/server/options/authentication.go}, C{authorization.go}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.errors import APIStatusError
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..authentication.anonymous import Anonymous
from ..authentication.certificates import (
    CertPool,
    ClientCAProvider,
    InvalidCABundle,
    X509Authenticator,
    common_name_user_conversion,
)
from ..authentication.requestheader import (
    RequestHeaderAuthenticator,
    RequestHeaderConfig,
)
from ..authentication.union import AuthenticatorUnion
from ..authentication.webhook import WebhookTokenAuthenticator
from ..authorization.union import (
    AuthorizerUnion,
    PrivilegedGroup,
)
from ..authorization.webhook import (
    WebhookAuthorizer,
    WebhookRules,
)
from ..client.errors import CallError
from ..client.responses import raise_for_status
from ..interfaces import (
    IAuthenticator,
    IAuthorizer,
)
from ._cluster import (
    KubeAPIClient,
    PathClient,
)

if TYPE_CHECKING:
    from ..interfaces import (
        IAuthenticationRequest,
        IServerReactor,
    )

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
#: The role that permits reading the ConfigMap.
ROLE: Final = "extension-apiserver-authentication-reader"
#: Seconds between two reads of the ConfigMap.
INTERVAL: Final = 60.0
_TIMEOUT: Final = 10.0
#: Paths that need no authorization (Go: --authorization-always-allow-paths).
_ALWAYS_ALLOWED_PATHS: Final = frozenset(("/healthz", "/readyz", "/livez"))


class LookupFailed(Exception):
    """The authentication configuration of the Kubernetes API server cannot be loaded. The message states the reason."""


@implementer(IAuthenticator)
class _SwappableAuthenticator:
    """An authenticator that is replaced when its configuration changes."""

    def __init__(self) -> None:
        self._current: IAuthenticator | None = None

    def replace(self, authenticator: IAuthenticator | None) -> None:
        """Replace the authenticator. With L{None}, no request is authenticated."""
        self._current = authenticator

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """See L{IAuthenticator.authenticate}."""
        return None if self._current is None else self._current.authenticate(request)


class DelegatedAuthentication:
    """
    Authenticates users as the Kubernetes API server does.

    @ivar authenticator: The authenticator of requests.
    @ivar authorities: The CAs of client certificates of users, and of the proxy.
    """

    _log = Logger()

    def __init__(self, cluster: KubeAPIClient, reactor: IServerReactor, token_seconds: float) -> None:
        """
        @param cluster: The client of the Kubernetes API server.
        @param reactor: The reactor.
        @param token_seconds: TTL, in seconds, of cached results for tokens.
        """
        self._cluster = cluster
        self._proxies = ClientCAProvider(CertPool(b"", needed=False))
        self._issuers = ClientCAProvider(CertPool(b"", needed=False), common_name_user_conversion)
        self.authorities = [self._issuers, self._proxies]
        self._proxy, self._users = _SwappableAuthenticator(), _SwappableAuthenticator()
        reviews = PathClient(cluster, "/apis/authentication.k8s.io/v1/tokenreviews")
        tokens = WebhookTokenAuthenticator(reactor, reviews, (), ttl=token_seconds)
        self.authenticator = AuthenticatorUnion([self._proxy, self._users, tokens], Anonymous())
        self._data: JSONObject | None = None
        self._loop = LoopingCall(self._refresh_periodically)
        self._loop.clock = reactor

    async def start(self, tolerate_lookup_failure: bool) -> None:
        """
        Load the configuration, and refresh it periodically.

        @param tolerate_lookup_failure: Whether to start without a configuration.
        @raise LookupFailed: The configuration cannot be loaded.
        """
        try:
            await self.refresh()
        except LookupFailed as error:
            if not tolerate_lookup_failure:
                raise
            self._log.warn("{error}", error=str(error))
        self._loop.start(INTERVAL, now=False)

    def stop(self) -> None:
        """Stop the periodic refresh."""
        if self._loop.running:
            self._loop.stop()

    async def _refresh_periodically(self) -> None:
        try:
            await self.refresh()
        except LookupFailed as error:
            self._log.warn("{error}", error=str(error))

    async def refresh(self) -> None:
        """
        Load the configuration now.

        @raise LookupFailed: The lookup failed. The previous configuration stays in use.
        """
        try:
            response = await self._cluster.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}", _TIMEOUT)
            raise_for_status(response)
            config_map = orjson.loads(response.body)
            data = config_map.get("data") or {}
            if data != self._data:
                self._apply(data)
                self._data = data
        except (CallError, APIStatusError) as error:
            raise LookupFailed(
                f"cannot read config map {NAMESPACE}/{NAME} with {self._cluster.description}: {error}."
                f" Bind this user to the role {ROLE} in namespace {NAMESPACE}."
            ) from error
        except (ValueError, AttributeError, TypeError) as error:
            raise LookupFailed(f"invalid config map {NAMESPACE}/{NAME}: {error}") from error

    def _apply(self, data: JSONObject) -> None:
        issuers = CertPool(_text(data, "client-ca-file"), needed=False)
        proxies = CertPool(_text(data, "requestheader-client-ca-file"), needed=False)
        allowed = tuple(_string_list(data, "requestheader-allowed-names"))
        if not allowed and _encoded(issuers) & _encoded(proxies):
            raise InvalidCABundle(
                "requestheader-client-ca-file and client-ca-file contain the same certificates, and there are no"
                " requestheader-allowed-names: every holder of a certificate could name any user"
            )
        proxy = RequestHeaderAuthenticator(self._proxies, _headers(data), allowed)
        self._issuers.set_pool(issuers)
        self._proxies.set_pool(proxies)
        self._users.replace(X509Authenticator(self._issuers) if issuers.certificates else None)
        self._proxy.replace(proxy if proxies.certificates else None)


def _headers(data: JSONObject) -> RequestHeaderConfig:
    return RequestHeaderConfig(
        *(
            tuple(name.strip().lower().encode() for name in _string_list(data, f"requestheader-{name_of_list}"))
            for name_of_list in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix")
        )
    )


def _encoded(pool: CertPool) -> set[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding

    return {one.public_bytes(Encoding.DER) for one in pool.certificates}


def _text(data: JSONObject, name: str) -> bytes:
    return str(data.get(name) or "").encode()


def _string_list(data: JSONObject, name: str) -> list[str]:
    parsed = orjson.loads(data.get(name) or "[]")
    if not isinstance(parsed, list) or not all(isinstance(one, str) for one in parsed):
        raise InvalidCABundle(f"{name} must be a list of strings")
    return parsed


@implementer(IAuthorizer)
class AlwaysAllowPaths:
    """Allows health checks for all users."""

    name = "AlwaysAllowPaths"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        if not attributes.is_resource_request and attributes.path in _ALWAYS_ALLOWED_PATHS:
            return Verdict(Decision.ALLOW)
        return Verdict(Decision.NO_OPINION)


def delegated_authorizer(
    cluster: KubeAPIClient, reactor: IServerReactor, authorized_seconds: float, unauthorized_seconds: float
) -> IAuthorizer:
    """
    Return an authorizer that sends SubjectAccessReviews to the Kubernetes API server and caches the decisions.

    @param cluster: The client of the Kubernetes API server.
    @param reactor: The reactor.
    @param authorized_seconds: TTL, in seconds, of cached allow decisions.
    @param unauthorized_seconds: TTL, in seconds, of cached other decisions.
    """
    reviews = PathClient(cluster, "/apis/authorization.k8s.io/v1/subjectaccessreviews")
    rules = WebhookRules(
        version="v1", timeout=_TIMEOUT, authorized_ttl=authorized_seconds, unauthorized_ttl=unauthorized_seconds
    )
    return AuthorizerUnion([AlwaysAllowPaths(), PrivilegedGroup(), WebhookAuthorizer(reactor, reviews, rules)])
