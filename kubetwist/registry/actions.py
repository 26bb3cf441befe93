"""Subresources that only do something: bind a pod to a node, evict it, issue a token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ..api.decoding import BodyError
from ..api.errors import APIStatusError, aggregate
from ..api.listoptions import delete_options_from_body
from ..api.options import CreateOptions, DeleteOptions, UpdateOptions
from ..api.resource import GroupResource, JSONObject
from ..api.selectors import label_selector_from_object
from ..interfaces import ICreator, INamedCreator
from . import deletion
from .kinds import ResourceInfo, SubresourceInfo
from .scope import RequestScope
from .tokens import (
    EXTENDED_SECONDS,
    RENEWED_SECONDS,
    TokenIssuer,
    check_expiry,
    check_token_request,
    token_claims,
)
from .updates import UpdateRules
from .validation.pods import validate_binding

if TYPE_CHECKING:
    from .store import Store
    from .stores import Stores

#: Seconds after which a refused eviction may be tried again, when its budget is not up to date yet.
BUDGET_RETRY = 10
#: What tokens can end with, by kind.
BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def success(code: int) -> JSONObject:
    """The Status of an action that worked."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


@implementer(INamedCreator)
class PodBinding:
    """C{pods/binding}: the scheduler's decision."""

    def __init__(self, pods: Store) -> None:
        self._pods = pods
        self.info = pods.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{INamedCreator.create_named}."""
        said = obj["metadata"].get("name")
        if said != name:
            raise APIStatusError.bad_request("name in URL does not match name in Binding object")
        self._pods.check_namespace(scope, obj["metadata"])
        self._pods.existing(scope, name)
        target = obj.get("target") or {}
        causes = validate_binding(obj)
        if causes:
            raise APIStatusError.unknown(aggregate(causes).removeprefix(": "))

        def bound(pod: JSONObject | None) -> JSONObject:
            assert pod is not None, "bindings do not create pods"
            self._assign(pod, target["name"], obj["metadata"])
            return pod

        rules = UpdateRules("binding", lambda obj, old: None, lambda obj, old: ())
        await self._pods.update(scope, name, bound, UpdateOptions(dry_run=options.dry_run), rules, patching=True)
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
        status = pod.setdefault("status", {})
        conditions = [one for one in status.get("conditions") or [] if one.get("type") != "PodScheduled"]
        now = deletion.timestamp(datetime.now(UTC))
        conditions.append({"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now})
        status["conditions"] = conditions


@implementer(ICreator)
class Bindings:
    """C{bindings}: the same by an older path, where the body alone names the pod."""

    def __init__(self, pods: Store) -> None:
        self._binding = PodBinding(pods)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        return await self._binding.create_named(scope, obj["metadata"].get("name", ""), obj, options)


@implementer(INamedCreator)
class PodEviction:
    """C{pods/eviction}: a deletion that respects disruption budgets."""

    def __init__(self, pods: Store, budgets: Store | None) -> None:
        self._pods = pods
        self._budgets = budgets
        self.info = pods.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{INamedCreator.create_named}."""
        said = obj["metadata"].get("name")
        if said and said != name:
            raise APIStatusError.bad_request("name in URL does not match name in Eviction object")
        delete_options = self._delete_options(obj, options)
        pod = orjson.loads(self._pods.existing(scope, name).item)
        if self._budgets is not None and not ignores_budgets(pod):
            await self._spend_budget(self._budgets, scope, pod, delete_options.dry_run)
        await self._pods.delete(scope, name, delete_options)
        return success(201)

    def _delete_options(self, obj: JSONObject, options: CreateOptions) -> DeleteOptions:
        try:
            found = delete_options_from_body(obj.get("deleteOptions") or {})
        except BodyError as error:
            raise APIStatusError.bad_request(str(error)) from None
        found.dry_run = found.dry_run or options.dry_run
        return found

    async def _spend_budget(self, budgets: Store, scope: RequestScope, pod: JSONObject, dry_run: bool) -> None:
        labels = pod["metadata"].get("labels") or {}
        matching = []
        for record in budgets.cache.list(f"{scope.namespace}/").records:
            budget = orjson.loads(record.item)
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and label_selector_from_object(selector).matches(labels):
                matching.append(record.name)
        if not matching:
            return
        if len(matching) > 1:
            raise APIStatusError.internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        pod_name = pod["metadata"]["name"]

        def spent(budget: JSONObject | None) -> JSONObject:
            assert budget is not None, "evictions make no budgets"
            spend(budget, pod_name)
            return budget

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        await budgets.update(scope, matching[0], spent, UpdateOptions(dry_run=dry_run), rules, patching=True)


def ignores_budgets(pod: JSONObject) -> bool:
    """Whether the end of a pod disrupts nothing: it has ended, not begun, or is ending."""
    phase = (pod.get("status") or {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def spend(budget: JSONObject, pod: str) -> None:
    """
    Take one disruption from a budget, in place.

    @raise APIStatusError: None is left (429).
    """
    meta, status = budget["metadata"], budget.setdefault("status", {})
    name = meta["name"]
    refused = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise budget_error(refused, why, BUDGET_RETRY)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise APIStatusError.forbidden(
            GroupResource("policy", "poddisruptionbudget"), name, "pdb disruptions allowed is negative"
        )
    if allowed == 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        raise budget_error(refused, why, 0)
    status["disruptionsAllowed"] = allowed - 1
    status.setdefault("disruptedPods", {})[pod] = deletion.timestamp(datetime.now(UTC))


def budget_error(message: str, why: str, retry: int) -> APIStatusError:
    """The 429 of an eviction that has to wait."""
    error = APIStatusError.too_many_requests(message, retry)
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        error.details["retryAfterSeconds"] = retry
    return error


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
        check_token_request(obj, name, scope.namespace)
        account = orjson.loads(self._accounts.existing(scope, name).item)
        meta, owner = obj["metadata"], account["metadata"]
        if meta.get("uid") and meta["uid"] != owner["uid"]:
            why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
            raise APIStatusError.conflict(GroupResource("authentication.k8s.io", "TokenRequest"), name, why)
        issuer: TokenIssuer | None = getattr(self._context, "token_issuer", None)
        if issuer is None:
            raise APIStatusError.service_unavailable("no issuer of service account tokens is configured")
        spec = obj.get("spec") or {}
        audiences = spec.get("audiences") or list(issuer.audiences)
        asked = spec.get("expirationSeconds")
        seconds = 3600 if asked is None else int(asked)
        check_expiry(seconds)
        reference = spec.get("boundObjectRef")
        bound = self._bound(scope.namespace, name, reference) if reference else {}
        now = datetime.now(UTC)
        extended = seconds == RENEWED_SECONDS and "pod" in bound and set(audiences) <= set(issuer.audiences)
        claims = token_claims(
            account,
            bound,
            audiences,
            int(now.timestamp()),
            EXTENDED_SECONDS if extended else seconds,
            seconds if extended else 0,
        )
        return {
            "metadata": {
                "name": owner["name"],
                "namespace": owner["namespace"],
                "uid": owner["uid"],
                "creationTimestamp": deletion.timestamp(now),
            },
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
