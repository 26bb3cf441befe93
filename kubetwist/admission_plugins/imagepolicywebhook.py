"""ImagePolicyWebhook: sends the images of a pod to a webhook, which admits or rejects them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson
from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue
from ..api.podspecs import DEBUGGING, containers
from ..api.resource import JSONObject
from ..client.errors import CallError
from ..client.httpclient import Response
from ..client.kubeconfig import read_kubeconfig
from ..client.responses import raise_for_status
from ..client.retrying import Backoff, with_backoff
from ..interfaces import IValidatingAdmission
from .pluginconfig import (
    InvalidConfiguration,
    strict_object,
    string_field,
)

if TYPE_CHECKING:
    from ..registry.admissioncontext import ServerAdmissionContext

#: Prefix of the keys of audit annotations.
_PREFIX: Final = "imagepolicywebhook.image-policy.k8s.io/"
#: Annotations of pods whose key contains this are sent to the webhook.
_FORWARDED_ANNOTATIONS: Final = ".image-policy.k8s.io/"
_FAILED_OPEN: Final = "alpha.image-policy.k8s.io/failed-open"
#: Maximum number of cached reviews.
_MAX_CACHE_ENTRIES: Final = 1024
#: Timeout of a call in seconds, as for client-go's webhooks.
_CALL_TIMEOUT: Final = 30.0
#: Maximum size of a response, in bytes.
_MAX_RESPONSE_BYTES: Final = 1 << 20


@frozen
class WebhookTimings:
    """
    TTLs and delays, in seconds.

    @ivar allow_ttl: The cache TTL of allowed reviews.
    @ivar deny_ttl: The cache TTL of denied reviews.
    @ivar retry_backoff: The delay before the first retry.
    """

    allow_ttl: float = 300.0
    deny_ttl: float = 30.0
    retry_backoff: float = 0.5


class ReviewCache:
    """Cache of review statuses with different TTLs for allowed and denied reviews."""

    def __init__(self, now: Callable[[], float], timings: WebhookTimings) -> None:
        """@param now: Returns the seconds of a monotonic clock."""
        self._now, self._timings = now, timings
        self._entries: OrderedDict[bytes, tuple[float, JSONObject]] = OrderedDict()

    def get(self, spec: bytes) -> JSONObject | None:
        """Return the cached status of a review; L{None} if there is none or it has expired."""
        entry = self._entries.get(spec)
        if entry is None:
            return None
        expires_at, status = entry
        if self._now() > expires_at:
            del self._entries[spec]
            return None
        self._entries.move_to_end(spec)
        return status

    def add(self, spec: bytes, status: JSONObject) -> None:
        """Cache the status of a review for its TTL."""
        ttl = self._timings.allow_ttl if status.get("allowed") else self._timings.deny_ttl
        if ttl <= 0:
            return
        self._entries[spec] = self._now() + ttl, status
        self._entries.move_to_end(spec)
        if len(self._entries) > _MAX_CACHE_ENTRIES:
            self._entries.popitem(last=False)


@implementer(IValidatingAdmission)
@frozen
class ImagePolicyWebhook:
    """
    See kubernetes, C{plugin/pkg/admission/imagepolicy/admission.go}.

    @ivar post: Sends a review.
    @ivar default_allow: Whether pods are admitted if the webhook fails.
    """

    name: ClassVar[str] = "ImagePolicyWebhook"
    resources: ClassVar[tuple[str, ...]] = ("pods", "pods/ephemeralcontainers")
    # Each call has a timeout.
    timeout: ClassVar[float | None] = None
    post: Callable[[bytes], Awaitable[Response]]
    reactor: Any
    reviews: ReviewCache
    timings: WebhookTimings
    default_allow: bool

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> ImagePolicyWebhook:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        decoded = strict_object(configuration, ("imagePolicy", "podNodeSelectorPluginConfig"), "")
        fields = ("kubeConfigFile", "allowTTL", "denyTTL", "retryBackoff", "defaultAllow")
        policy = strict_object(decoded.get("imagePolicy"), fields, "imagePolicy")
        timings = WebhookTimings(
            retry_backoff=_duration(policy, "retryBackoff", 1e-3, 1e-9, 300, 0.5),
            allow_ttl=_duration(policy, "allowTTL", 1, 1, 1800, 300),
            deny_ttl=_duration(policy, "denyTTL", 1, 1, 1800, 30),
        )
        path = string_field(policy.get("kubeConfigFile"), "imagePolicy.kubeConfigFile")
        if not path:
            raise InvalidConfiguration("imagePolicy.kubeConfigFile is required")
        if not isinstance(policy.get("defaultAllow") or False, bool):
            raise InvalidConfiguration("imagePolicy.defaultAllow: expected true or false")
        assert server.outgoing is not None, "a server with plugins can make outgoing calls"
        client = server.outgoing.client(read_kubeconfig(path), limit=_MAX_RESPONSE_BYTES)

        async def post(review: bytes) -> Response:
            response: Response = await client.post(review, timeout=_CALL_TIMEOUT)
            return response

        reviews = ReviewCache(server.reactor.seconds, timings)
        return cls(post, server.reactor, reviews, timings, bool(policy.get("defaultAllow")))

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        pod = attributes.object
        assert pod is not None
        spec = review_spec(attributes, pod)
        key = orjson.dumps(spec)
        status = self.reviews.get(key)
        if status is None:
            try:
                status = await self._review(spec)
            except (CallError, APIStatusError, ValueError) as error:
                self._handle_webhook_error(attributes, pod, error)
                return
            self.reviews.add(key, status)
        for name, value in sorted((status.get("auditAnnotations") or {}).items()):
            attributes.annotate(_PREFIX + name, value)
        if not status.get("allowed"):
            reason = status.get("reason")
            message = "one or more images rejected by webhook backend"
            if reason:
                message = f"image policy webhook backend denied one or more images: {reason}"
            raise attributes.forbidden(message)

    async def _review(self, spec: JSONObject) -> JSONObject:
        """
        Return the status of a review by the webhook.

        @raise CallError: The webhook cannot be reached.
        @raise APIStatusError: The webhook rejected the review.
        @raise ValueError: The response is not a review.
        """
        review = {
            "kind": "ImageReview",
            "apiVersion": "imagepolicy.k8s.io/v1alpha1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": False},
        }
        body = orjson.dumps(review)

        async def attempt() -> Response:
            response = await self.post(body)
            raise_for_status(response)
            return response

        response = await with_backoff(self.reactor, attempt, Backoff(initial=self.timings.retry_backoff))
        return read_status(response.body)

    def _handle_webhook_error(self, attributes: AdmissionAttributes, pod: JSONObject, error: Exception) -> None:
        """
        Apply C{defaultAllow} after a failed call.

        @raise APIStatusError: Pods are not admitted by default (403).
        """
        if not self.default_allow:
            if isinstance(error, APIStatusError):
                raise attributes.forbidden(error.message) from error
            raise attributes.forbidden(str(error)) from error
        attributes.annotate(f"{_PREFIX}failed-open", "true")
        meta = pod["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), _FAILED_OPEN: "true"}


def review_spec(attributes: AdmissionAttributes, pod: JSONObject) -> JSONObject:
    """
    Return the spec of an ImageReview.

    It contains the images of all containers but ephemeral ones; requests for the subresource
    C{ephemeralcontainers} review only these.
    """
    spec = pod["spec"]
    only_ephemeral = bool(attributes.subresource)
    reviewed = [(container, kind) for container, _, kind in containers(spec) if (kind == DEBUGGING) == only_ephemeral]
    # Regular containers first, as in the reference.
    reviewed.sort(key=lambda one: one[1] != "container")
    images = [{"image": container.get("image") or ""} for container, _ in reviewed]
    annotations = {
        key: value for key, value in (pod["metadata"].get("annotations") or {}).items() if _FORWARDED_ANNOTATIONS in key
    }
    review: JSONObject = {"containers": images}
    if annotations:
        review["annotations"] = dict(sorted(annotations.items()))
    if attributes.namespace:
        review["namespace"] = attributes.namespace
    return review


def read_status(body: bytes) -> JSONObject:
    """
    Return the status of an C{ImageReview}.

    @raise ValueError: The body is not an ImageReview.
    """
    review = orjson.loads(body)
    if not isinstance(review, dict) or review.get("kind") != "ImageReview":
        kind = review.get("kind") if isinstance(review, dict) else None
        raise ValueError(f"expected an ImageReview, got {kind}")
    status = {} if review.get("status") is None else review["status"]
    annotations = status.get("auditAnnotations") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("allowed", False), bool):
        raise ValueError("invalid status of the ImageReview")
    if not isinstance(annotations or {}, dict) or not all(isinstance(one, str) for one in (annotations or {}).values()):
        raise ValueError("invalid audit annotations of the ImageReview")
    return status


def _duration(policy: JSONObject, field: str, scale: float, minimum: float, maximum: float, default: float) -> float:
    """
    Return a duration of the configuration, in seconds.

    @param policy: The configuration C{imagePolicy}.
    @param field: The field: a whole number, C{-1} for a duration of 0, or C{0} for the default.
    @param scale: The unit of the field, in seconds.
    @param minimum: The exclusive minimum in seconds.
    @param maximum: The maximum in seconds.
    @param default: The default in seconds.
    @raise InvalidConfiguration: The value is out of bounds.
    """
    value = policy.get(field) or 0
    if type(value) is not int:
        raise InvalidConfiguration(f"imagePolicy.{field}: expected a whole number")
    if value == -1:
        return 0.0
    if not value:
        return default
    if not minimum < value * scale <= maximum:
        raise InvalidConfiguration(f"valid value is between {minimum:g}s and {maximum:g}s, got {value * scale:g}s")
    return value * scale
