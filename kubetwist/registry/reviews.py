"""Resources that have no objects: a POST asks the server something and is answered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import maybeDeferred
from zope.interface import implementer

from ..api.authorization import AuthorizerAttributes, Decision
from ..api.errors import APIStatusError, Cause, invalid, required
from ..api.options import CreateOptions, GetOptions, ListOptions
from ..api.resource import GroupResource, JSONObject, UserInfo
from ..interfaces import ICreator, IGetter, ILister
from ..storage.record import Record
from ..storage.watchcache import Listing
from .actions import Bindings
from .kinds import ResourceInfo
from .scope import RequestScope

if TYPE_CHECKING:
    from .stores import Stores


@implementer(ICreator)
class AccessReview:
    """C{SubjectAccessReview} and its kin: may somebody do something?"""

    def __init__(self, info: ResourceInfo, context: Any) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        spec = obj.get("spec") or {}
        own = self.info.kind == "SelfSubjectAccessReview"
        causes = [] if own else subject_causes(spec)
        resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (resource is None) == (other is None):
            what = "resourceAttributes"
            if resource is not None:
                text = "cannot be specified in combination with resourceAttributes"
                causes.append(invalid("spec.nonResourceAttributes", other, text))
            else:
                text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
                causes.append(invalid(f"spec.{what}", resource, text))
        if causes:
            raise APIStatusError.invalid(self.info.group_kind, "", causes)
        if self.info.kind == "LocalSubjectAccessReview":
            resource = resource or {}
            if resource.get("namespace", "") != scope.namespace:
                text = f"spec.resourceAttributes.namespace must match namespace: {scope.namespace}"
                raise APIStatusError.bad_request(text)
        user = scope.user if own else subject(spec)
        verdict = await maybeDeferred(self._context.authorizer.authorize, question(user, resource, other))
        status: JSONObject = {"allowed": verdict.decision is Decision.ALLOW}
        if verdict.decision is Decision.DENY:
            status["denied"] = True
        if verdict.reason:
            status["reason"] = verdict.reason
        obj["status"] = status
        return obj


def subject_causes(spec: JSONObject) -> list[Cause]:
    """What is wrong with the subject of a review."""
    if spec.get("user") or spec.get("groups"):
        return []
    return [required("spec.user", "at least one of user or group must be specified")]


def subject(spec: JSONObject) -> UserInfo:
    """Whom a review asks about."""
    extra = {name: tuple(values) for name, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def question(user: UserInfo, resource: JSONObject | None, other: JSONObject | None) -> AuthorizerAttributes:
    """What a review asks, as authorizers take it."""
    if resource is None:
        other = other or {}
        return AuthorizerAttributes(user, other.get("verb", ""), path=other.get("path", ""), is_resource_request=False)
    return AuthorizerAttributes(
        user,
        resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", "*"),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


@implementer(ICreator)
class SelfSubjectReview:
    """Who am I?"""

    def __init__(self, info: ResourceInfo) -> None:
        self.info = info

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        obj["status"] = {"userInfo": user_object(scope.user)}
        return obj


def user_object(user: UserInfo) -> JSONObject:
    """A user as reviews show it."""
    shown: JSONObject = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {name: list(values) for name, values in user.extra.items()}
    return shown


@implementer(ICreator)
class TokenReview:
    """Whose token is this?"""

    def __init__(self, info: ResourceInfo, context: Any) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        token = (obj.get("spec") or {}).get("token", "")
        if not token:
            raise APIStatusError.bad_request("token is required for TokenReview in authentication")
        user = await maybeDeferred(self._context.user_of_token, token)
        status: JSONObject = {}
        if user is not None:
            status = {"authenticated": True, "user": user_object(user)}
        obj["status"] = status
        return obj


@implementer(ICreator)
class RulesReview:
    """C{SelfSubjectRulesReview}: what may I do? Only rule-based authorizers can tell."""

    def __init__(self, info: ResourceInfo, context: Any) -> None:
        self.info = info
        self._context = context

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        namespace = (obj.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise APIStatusError.bad_request("no namespace on request")
        rules = getattr(self._context.authorizer, "rules_for", None)
        if rules is None:
            status: JSONObject = {"resourceRules": [], "nonResourceRules": [], "incomplete": True}
        else:
            status = await maybeDeferred(rules, scope.user, namespace)
        obj["status"] = status
        return obj


@implementer(IGetter, ILister)
class ComponentStatuses:
    """The health of what a control plane consists of; here, that is this server and its store."""

    def __init__(self, info: ResourceInfo) -> None:
        self.info = info

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}."""
        if name != "etcd-0":
            raise APIStatusError.not_found(GroupResource("", "componentstatuses"), name)
        return {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
        }

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}."""
        item = b'{"metadata":{"name":"etcd-0"},"conditions":[{"type":"Healthy","status":"True","message":"ok"}]}'
        return Listing([Record("etcd-0", 0, item, {}, {})], 0, "", None)


def review_storage(info: ResourceInfo, stores: Stores, context: Any) -> Any:
    """The storage object of such a resource."""
    if info.kind == "Binding":
        return Bindings(stores.get("", "pods"))
    if info.kind == "ComponentStatus":
        return ComponentStatuses(info)
    if info.kind == "TokenReview":
        return TokenReview(info, context)
    if info.kind == "SelfSubjectReview":
        return SelfSubjectReview(info)
    if info.kind == "SelfSubjectRulesReview":
        return RulesReview(info, context)
    return AccessReview(info, context)
