"""
Authorization by a webhook: sends a C{SubjectAccessReview} and caches the decision.

@see: kubernetes/apiserver, C{plugin/pkg/authorizer/webhook/webhook.go}.
"""

from __future__ import annotations

from hashlib import sha256
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import orjson
from attrs import frozen

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.flagvalues import FlagValues
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..api.selectors import OPERATOR_NAMES
from ..client.caching import ExpiringCache
from ..client.errors import CallError
from ..client.httpclient import Response
from ..client.responses import raise_for_status
from ..client.retrying import (
    DEFAULT_RETRY_BACKOFF,
    Backoff,
    with_backoff,
)
from ..client.reviews import review_status
from ..client.singleflight import SingleFlight
from ..interfaces import (
    IAuthorizer,
    IRuleResolver,
)
from .webhookmetrics import WebhookMetrics

if TYPE_CHECKING:
    from ._context import AuthorizationContext

#: The name of the webhook that flags configure.
DEFAULT_NAME: Final = "default"
#: Maximum number of cached decisions of a webhook.
CACHE_SIZE: Final = 8192
#: Decisions about attributes that are longer, in characters, are not cached.
_MAX_CACHED_LENGTH: Final = 10000

_SKIPPED: Final = Verdict(Decision.NO_OPINION)


class WebhookClientProtocol(Protocol):
    """The client that calls the webhook."""

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """@see: L{kubetwist.client.httpclient.WebhookClient.post}."""


class Conditions(Protocol):
    """Decides whether a webhook is called: L{kubetwist.cel.authorization.MatchConditions}."""

    def matches(self, spec: JSONObject) -> bool:
        """@raise kubetwist.cel.authorization.MatchConditionError: A condition cannot be evaluated."""


@frozen
class WebhookRules:
    """
    The configuration of a webhook.

    @ivar version: The version of C{authorization.k8s.io}: C{"v1"} or C{"v1beta1"}.
    @ivar timeout: The timeout of one attempt, in seconds.
    @ivar authorized_ttl: Seconds that an allowed decision is cached; 0 for never.
    @ivar unauthorized_ttl: Seconds that other decisions are cached; 0 for never.
    @ivar deny_on_error: Whether a failure of the webhook denies the request; otherwise there is no opinion.
    @ivar conditions: The match conditions of the webhook; L{None} to call it for all requests.
    """

    version: str = "v1beta1"
    timeout: float = 30.0
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    deny_on_error: bool = False
    conditions: Conditions | None = None


@implementer(IAuthorizer, IRuleResolver)
class WebhookAuthorizer:
    """Returns the decisions of a webhook."""

    name: ClassVar[str] = "Webhook"
    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTime,
        client: WebhookClientProtocol,
        rules: WebhookRules,
        backoff: Backoff = DEFAULT_RETRY_BACKOFF,
        *,
        metrics_name: str = DEFAULT_NAME,
        metrics: WebhookMetrics | None = None,
    ) -> None:
        """
        @param reactor: The clock.
        @param client: The client of the webhook.
        @param rules: The configuration.
        @param backoff: The delays between attempts.
        @param metrics_name: The name of the webhook in metrics.
        @param metrics: The metrics of all authorization webhooks.
        """
        self._metrics_name = metrics_name
        self._metrics = metrics or WebhookMetrics()
        self._reactor = reactor
        self._client = client
        self._rules = rules
        self._backoff = backoff
        self._api_version = f"authorization.k8s.io/{rules.version}"
        self._on_error = Decision.DENY if rules.deny_on_error else Decision.NO_OPINION
        self._cache: ExpiringCache[bytes, Verdict] = ExpiringCache(CACHE_SIZE, reactor.seconds)
        self._calls: SingleFlight[bytes, Verdict] = SingleFlight()

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """See L{IAuthorizer.authorize}."""
        spec = review_spec(attributes)
        conditions = self._rules.conditions
        if conditions is not None:
            from ..cel.authorization import MatchConditionError

            try:
                if not conditions.matches(spec):
                    return _SKIPPED
            except MatchConditionError as error:
                return Verdict(self._on_error, "", str(error))
        key = sha256(orjson.dumps(spec)).digest()
        verdict = self._cache.get(key)
        if verdict is not None:
            return verdict
        cacheable = _length(attributes) < _MAX_CACHED_LENGTH
        return self._calls.do(key, lambda: self._review(spec, key, cacheable))

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}; always incomplete."""
        return {
            "resourceRules": [],
            "nonResourceRules": [],
            "incomplete": True,
            "evaluationError": "webhook authorizer does not support user rule resolution",
        }

    async def _review(self, spec: JSONObject, key: bytes, cacheable: bool) -> Verdict:
        rules = self._rules
        if rules.version == "v1beta1" and "groups" in spec:
            spec = {("group" if name == "groups" else name): value for name, value in spec.items()}
        review = {
            "kind": "SubjectAccessReview",
            "apiVersion": self._api_version,
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        body = orjson.dumps(review)
        began = perf_counter()
        try:
            status = await with_backoff(self._reactor, lambda: self._post(body), self._backoff)
            verdict = _verdict(status)
        except Exception as error:
            result = _result(error)
            ignored = self._on_error is Decision.NO_OPINION and result != "canceled"
            self._metrics.observe(self._metrics_name, result, perf_counter() - began, ignored=ignored)
            self._log.error("Failed to make webhook authorizer request: {reason}", reason=str(error))
            return Verdict(self._on_error, "", str(error))
        self._metrics.observe(self._metrics_name, "success", perf_counter() - began)
        if cacheable:
            allowed = status.get("allowed") is True
            self._cache.put(key, verdict, rules.authorized_ttl if allowed else rules.unauthorized_ttl)
        return verdict

    async def _post(self, body: bytes) -> JSONObject:
        response = await self._client.post(body, timeout=self._rules.timeout)
        raise_for_status(response, quote=False)
        return review_status(response, "SubjectAccessReview", self._api_version)


def _result(error: Exception) -> str:
    """Return the label value of a failure in metrics."""
    if isinstance(error, CancelledError):
        return "canceled"
    return "timeout" if isinstance(error, CallError) and error.timed_out else "error"


def _verdict(status: JSONObject) -> Verdict:
    allowed, denied, reason = status.get("allowed"), status.get("denied"), status.get("reason")
    for name, value, kind in (("allowed", allowed, bool), ("denied", denied, bool), ("reason", reason, str)):
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{name} in the SubjectAccessReview is not a {'string' if kind is str else 'boolean'}")
    reason = reason or ""
    if denied and allowed:
        return Verdict(Decision.DENY, reason, "webhook subject access review returned both allow and deny response")
    if denied:
        return Verdict(Decision.DENY, reason)
    return Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION, reason)


def _length(attributes: AuthorizerAttributes) -> int:
    return sum(
        map(
            len,
            (
                attributes.namespace,
                attributes.verb,
                attributes.group,
                attributes.version,
                attributes.resource,
                attributes.subresource,
                attributes.name,
                attributes.path,
            ),
        )
    )


def review_spec(attributes: AuthorizerAttributes) -> JSONObject:
    """Return the attributes of a request as the C{spec} of a C{SubjectAccessReview} in v1."""
    spec: JSONObject = {}
    if attributes.is_resource_request:
        resource: JSONObject = {}
        for name, value in (
            ("namespace", attributes.namespace),
            ("verb", attributes.verb),
            ("group", attributes.group),
            ("version", attributes.version),
            ("resource", attributes.resource),
            ("subresource", attributes.subresource),
            ("name", attributes.name),
        ):
            if value:
                resource[name] = value
        if attributes.field_terms:
            resource["fieldSelector"] = {
                "requirements": [
                    {"key": field, "operator": "In" if equal else "NotIn", "values": [value]}
                    for field, value, equal in attributes.field_terms
                ]
            }
        labels = [
            {
                "key": one.key,
                "operator": OPERATOR_NAMES[one.operator],
                **({"values": list(one.values)} if one.values else {}),
            }
            for one in attributes.label_terms
            # Terms whose operator the API lacks are omitted: the review then covers more objects.
            if one.operator in OPERATOR_NAMES
        ]
        if labels:
            resource["labelSelector"] = {"requirements": labels}
        spec["resourceAttributes"] = resource
    else:
        spec["nonResourceAttributes"] = {
            name: value for name, value in (("path", attributes.path), ("verb", attributes.verb)) if value
        }
    user = attributes.user
    if user.name:
        spec["user"] = user.name
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {name: list(values) for name, values in user.extra.items()}
    if user.uid:
        spec["uid"] = user.uid
    return spec


def make(options: FlagValues, server: AuthorizationContext) -> WebhookAuthorizer:
    """
    Return the authorizer of C{--authorization-webhook-config-file}.

    @raise ValueError: The configuration is missing or invalid.
    """
    path = options["authorization-webhook-config-file"]
    if not path:
        raise ValueError("authorization-mode Webhook's authorization config file not passed")
    from ..client.kubeconfigclient import KubeconfigClient

    rules = WebhookRules(
        version=options["authorization-webhook-version"],
        authorized_ttl=options["authorization-webhook-cache-authorized-ttl"],
        unauthorized_ttl=options["authorization-webhook-cache-unauthorized-ttl"],
    )
    client = KubeconfigClient(server.outgoing, server.files, path, "--authorization-webhook-config-file")
    return WebhookAuthorizer(server.reactor, client, rules, metrics=server.authorization_webhooks)
