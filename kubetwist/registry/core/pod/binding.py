"""Subresources that only do something: bind a pod to a node, issue a token."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ....admission.attributes import AdmissionAttributes
from ....api import times
from ....api.errors import APIStatusError, aggregate
from ....api.options import CreateOptions, UpdateOptions
from ....api.requestscope import RequestScope
from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....interfaces import ICreator, INamedCreator
from ...generic import deletion
from ...generic.admitting import virtual_attributes
from ...generic.keys import check_key
from ...generic.resourceinfo import ResourceInfo, SubresourceInfo
from ...generic.updates import UpdateRules
from ..serviceaccount.tokens import (
    EXTENDED_SECONDS,
    RENEWED_SECONDS,
    TokenIssuer,
    check_expiry,
    check_token_request,
    token_claims,
)
from .eviction import PodEviction, success
from .validation.pod import validate_binding

if TYPE_CHECKING:
    from ...generic.store import Store
    from ...stores import Stores

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
#: What tokens can end with, by kind.
BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@implementer(INamedCreator)
class PodBinding:
    """C{pods/binding}: the scheduler's decision."""

    kind = GroupVersionKind("", "v1", "Binding")

    def __init__(self, pods: Store) -> None:
        self._pods = pods
        self.info = pods.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{INamedCreator.create_named}."""
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = self._pods.attributes("CREATE", scope, name, obj, None, options, "binding", self.kind)
        await self._pods.admit(attributes)
        if obj["metadata"].get("name") != name:
            raise APIStatusError.bad_request("name in URL does not match name in Binding object")
        return await self.bind(scope, name, obj, options, attributes)

    async def bind(
        self,
        scope: RequestScope,
        name: str,
        obj: JSONObject,
        options: CreateOptions,
        attributes: AdmissionAttributes,
    ) -> JSONObject:
        """
        Bind a pod, after mutating admission.

        @raise APIStatusError: Validating admission refuses, the pod does not exist (404), or it cannot be bound (409).
        """
        target = obj.get("target") or {}
        causes = validate_binding(obj)
        if causes:
            raise APIStatusError.unknown(aggregate(causes).removeprefix(": "))

        def bound(pod: JSONObject | None) -> JSONObject:
            assert pod is not None, "bindings do not create pods"
            key = self._pods.key(scope.namespace, name)
            for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
                wanted, found = obj["metadata"].get(field), pod["metadata"][field]
                if wanted and wanted != found:
                    raise self._pods.failed_precondition(key, name, what, wanted, found, dry_run=options.dry_run)
            self._assign(pod, target["name"], obj["metadata"])
            return pod

        await self._pods.admission.validate(attributes)
        rules = UpdateRules("binding", lambda obj, old: None, lambda obj, old: ())
        inner = scope.carrying_out()
        await self._pods.update(inner, name, bound, UpdateOptions(dry_run=options.dry_run), rules, patching=True)
        return success(201)

    def _assign(self, pod: JSONObject, node: str, meta: JSONObject) -> None:
        name = pod["metadata"]["name"]
        conflict = APIStatusError.conflict
        resource = GroupResource("", "pods/binding")
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict(resource, name, f"pod {name} is being deleted, cannot be assigned to a host")
        spec = pod.setdefault("spec", {})
        if spec.get("nodeName"):
            raise conflict(resource, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise conflict(resource, name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        if meta.get("annotations"):
            pod["metadata"].setdefault("annotations", {}).update(meta["annotations"])
        if meta.get("labels"):
            pod["metadata"].setdefault("labels", {}).update(meta["labels"])
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _set_condition(status.setdefault("conditions", []), "PodScheduled")


def _set_condition(conditions: list[JSONObject], kind: str) -> None:
    """
    Set a pod's condition to true, at its position in the list; see C{UpdatePodCondition} in C{pkg/api/v1/pod/util.go}.
    """
    new = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": times.now()}
    for index, one in enumerate(conditions):
        if one.get("type") == kind:
            if one.get("status") == "True":
                new["lastTransitionTime"] = one.get("lastTransitionTime")
            conditions[index] = new
            return
    conditions.append(new)


@implementer(ICreator)
class Bindings:
    """C{bindings}: the same by an older path, where the body alone names the pod."""

    def __init__(self, info: ResourceInfo, pods: Store) -> None:
        self.info = info
        self._pods = pods
        self._binding = PodBinding(pods)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = virtual_attributes(self.info, self._pods.context, scope, obj, options)
        await self._pods.admit(attributes)
        name = obj["metadata"].get("name")
        if not name:
            raise APIStatusError.bad_request("Name parameter required.")
        return await self._binding.bind(scope, name, obj, options, attributes)


@implementer(INamedCreator)
class TokenRequests:
    """C{serviceaccounts/token}: tokens for an account, signed by the server's L{TokenIssuer}."""

    def __init__(self, accounts: Store, stores: Stores, context: Any) -> None:
        self._accounts = accounts
        self._stores = stores
        self._context = context
        self.info = accounts.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{INamedCreator.create_named}."""
        self._accounts.check_namespace(scope, obj["metadata"])
        attributes = self._accounts.attributes("CREATE", scope, name, obj, None, options, "token", TOKEN_REQUEST)
        await self._accounts.admit(attributes)
        check_token_request(obj, name, scope.namespace)
        account = orjson.loads(self._accounts.existing(scope, name).item)
        meta, owner = obj["metadata"], account["metadata"]
        if meta.get("uid") and meta["uid"] != owner["uid"]:
            why = (
                f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
                f" ({owner['uid']})"
            )
            raise APIStatusError.conflict(GroupResource("authentication.k8s.io", "TokenRequest"), name, why)
        issuer: TokenIssuer | None = getattr(self._context, "token_issuer", None)
        if issuer is None:
            raise APIStatusError.service_unavailable("no issuer of service account tokens is configured")
        spec = obj.get("spec") or {}
        audiences = spec.get("audiences") or list(issuer.audiences)
        asked = spec.get("expirationSeconds")
        seconds = 3600 if asked is None else int(asked)
        check_expiry(seconds)
        await self._accounts.admission.validate(attributes)
        reference = spec.get("boundObjectRef")
        bound = {} if reference is None else self._bound(scope.namespace, name, reference)
        now = times.utc_now()
        if issuer.longest and seconds > issuer.longest:
            scope.warn(f"requested expiration of {seconds} seconds shortened to {issuer.longest} seconds")
            seconds = issuer.longest
        extended = (
            issuer.extend and seconds == RENEWED_SECONDS and "pod" in bound and set(audiences) <= set(issuer.audiences)
        )
        claims = token_claims(
            account,
            bound,
            audiences,
            int(now.timestamp()),
            EXTENDED_SECONDS if extended else seconds,
            seconds if extended else 0,
        )
        scope.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}", "Metadata")
        shown = {**meta, **{field: owner[field] for field in ("name", "namespace", "uid")}}
        shown["creationTimestamp"] = deletion.timestamp(now)
        return {
            "metadata": shown,
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {
                "token": issuer.sign(claims),
                "expirationTimestamp": deletion.timestamp(now + timedelta(seconds=seconds)),
            },
        }

    def _bound(self, namespace: str, account: str, reference: JSONObject) -> dict[str, JSONObject]:
        """
        The object that a token ends with, and the node of a pod.

        @raise APIStatusError: There is no such object (404), it is another one (409), or can not be bound to (400).
        """
        kind, name = reference.get("kind") or "", reference.get("name") or ""
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        resource = BINDABLE.get(kind) if not group else None
        if resource is None:
            shown = f"{group}/{version}" if group else f"/{version}"
            raise APIStatusError.bad_request(f"cannot bind token to object of type {shown}, Kind={kind}")
        check_key(name)
        found = self._stores.lookup("", resource, namespace if kind != "Node" else "", name)
        if found is None:
            raise APIStatusError.not_found(GroupResource("", resource), name)
        bound = {kind.lower(): found}
        if kind == "Pod":
            if found["spec"].get("serviceAccountName") != account:
                why = (
                    f'cannot bind token for serviceaccount "{account}" to pod running with different '
                    "serviceaccount name."
                )
                raise APIStatusError.bad_request(why)
            node = found["spec"].get("nodeName")
            if node:
                known = self._stores.lookup("", "nodes", "", node)
                bound["node"] = known or {"metadata": {"name": node, "uid": ""}}
        uid, wanted = found["metadata"]["uid"], reference.get("uid")
        if wanted and wanted != uid:
            why = (
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise APIStatusError.conflict(GroupResource(group, kind), name, why)
        return bound


def action_storage(info: ResourceInfo, subresource: SubresourceInfo, stores: Stores, context: Any) -> Any:
    """The storage object of an action."""
    store = stores.get(info.group, info.resource)
    if subresource.name == "binding":
        return PodBinding(store)
    if subresource.name == "eviction":
        return PodEviction(store, stores.find("policy", "poddisruptionbudgets"))
    return TokenRequests(store, stores, context)
