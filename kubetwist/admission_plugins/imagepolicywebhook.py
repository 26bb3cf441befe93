"""Asks a webhook whether a pod's images may be run."""

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
    only,
    text,
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
    """A cache of the webhook's responses, each kept for its time to live."""

    def __init__(self, seconds: Callable[[], float], timings: WebhookTimings) -> None:
        self._seconds, self._durations = seconds, timings
        self._known: OrderedDict[bytes, tuple[float, JSONObject]] = OrderedDict()

    def get(self, spec: bytes) -> JSONObject | None:
        """Return the status of a review; L{None} if it is not known any more."""
        found = self._known.get(spec)
        if found is None:
            return None
        until, status = found
        if self._seconds() > until:
            del self._known[spec]
            return None
        self._known.move_to_end(spec)
        return status

    def add(self, spec: bytes, status: JSONObject) -> None:
        """Remember a status."""
        seconds = self._durations.allow_ttl if status.get("allowed") else self._durations.deny_ttl
        if seconds <= 0:
            return
        self._known[spec] = self._seconds() + seconds, status
        self._known.move_to_end(spec)
        if len(self._known) > _MAX_CACHE_ENTRIES:
            self._known.popitem(last=False)


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
    # Each call has its own limit.
    timeout: ClassVar[float | None] = None
    post: Callable[[bytes], Awaitable[Response]]
    reactor: Any
    reviews: ReviewCache
    timings: WebhookTimings
    default_allow: bool

    @classmethod
    def configured(cls, server: ServerAdmissionContext, configuration: JSONValue) -> ImagePolicyWebhook:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        said = only(configuration, ("imagePolicy", "podNodeSelectorPluginConfig"), "")
        fields = ("kubeConfigFile", "allowTTL", "denyTTL", "retryBackoff", "defaultAllow")
        policy = only(said.get("imagePolicy"), fields, "imagePolicy")
        timings = WebhookTimings(
            retry_backoff=_duration(policy, "retryBackoff", 1e-3, 1e-9, 300, 0.5),
            allow_ttl=_duration(policy, "allowTTL", 1, 1, 1800, 300),
            deny_ttl=_duration(policy, "denyTTL", 1, 1, 1800, 30),
        )
        path = text(policy.get("kubeConfigFile"), "imagePolicy.kubeConfigFile")
        if not path:
            raise InvalidConfiguration("imagePolicy.kubeConfigFile is required")
        if not isinstance(policy.get("defaultAllow") or False, bool):
            raise InvalidConfiguration("imagePolicy.defaultAllow: expected true or false")
        assert server.outgoing is not None, "servers with plugins call others"
        client = server.outgoing.client(read_kubeconfig(path), limit=_MAX_RESPONSE_BYTES)

        async def post(review: bytes) -> Response:
            found: Response = await client.post(review, timeout=_CALL_TIMEOUT)
            return found

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
                status = await self._ask(spec)
            except (CallError, APIStatusError, ValueError) as error:
                self._handle_webhook_error(attributes, pod, error)
                return
            self.reviews.add(key, status)
        for name, value in sorted((status.get("auditAnnotations") or {}).items()):
            attributes.annotate(_PREFIX + name, value)
        if not status.get("allowed"):
            reason = status.get("reason")
            why = "one or more images rejected by webhook backend"
            if reason:
                why = f"image policy webhook backend denied one or more images: {reason}"
            raise attributes.forbidden(why)

    async def _ask(self, spec: JSONObject) -> JSONObject:
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

        async def once() -> Response:
            answer = await self.post(body)
            raise_for_status(answer)
            return answer

        answer = await with_backoff(self.reactor, once, Backoff(initial=self.timings.retry_backoff))
        return read_status(answer.body)

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
    """Return the spec of an ImageReview: all images, or only the ephemeral containers' if these are written."""
    spec = pod["spec"]
    # Ephemeral containers are added through a subresource.
    added = bool(attributes.subresource)
    asked_about = [(container, kind) for container, _, kind in containers(spec) if (kind == DEBUGGING) == added]
    # The reference's order, in which the usual ones lead.
    asked_about.sort(key=lambda one: one[1] != "container")
    images = [{"image": container.get("image") or ""} for container, _ in asked_about]
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

    @raise ValueError: The value is invalid.
    """
    review = orjson.loads(body)
    if not isinstance(review, dict) or review.get("kind") != "ImageReview":
        kind = review.get("kind") if isinstance(review, dict) else None
        raise ValueError(f"expected an ImageReview, got {kind}")
    status = {} if review.get("status") is None else review["status"]
    annotations = status.get("auditAnnotations") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(status.get("allowed", False), bool):
        raise ValueError("the status of the ImageReview makes no sense")
    if not isinstance(annotations or {}, dict) or not all(isinstance(one, str) for one in (annotations or {}).values()):
        raise ValueError("the audit annotations of the ImageReview make no sense")
    return status


def _duration(policy: JSONObject, field: str, scale: float, minimum: float, maximum: float, default: float) -> float:
    """
    Return a duration in seconds: C{-1} is none at all, C{0} the usual one.

    @raise InvalidConfiguration: It is out of bounds.
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
