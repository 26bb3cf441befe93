"""
Makes the built-in roles and bindings, and gives those that are there what they miss.

As the reference does at every start: permissions and subjects that were added are left alone, those that were taken
away come back, unless the object opts out by the annotation L{AUTOUPDATE}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import orjson

from twisted.internet.defer import Deferred, FirstError, gatherResults

from ....api.errors import APIStatusError
from ....api.jsontypes import JSONValue
from ....api.options import DeleteOptions, UpdateOptions
from ....api.rbacrules import Rule, uncovered_rules
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ...generic.bootstrap import SERVER, ensure
from ..ruleresolver import GROUP
from .controllerroles import CONTROLLERS
from .roles import AGGREGATED, BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, LABELLED, ROLES

if TYPE_CHECKING:
    from ...generic.store import Store
    from ...stores import Stores

#: C{"false"} leaves an object as it is.
AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
#: Followed by the name of the role that gathers.
AGGREGATE_TO: Final = "rbac.authorization.k8s.io/aggregate-to-"
_CONTROLLER: Final = "system:controller:"

#: Gives an existing object what it misses of the one that is expected: another object, or L{None} when it has all.
ComputeReconciled = Callable[[JSONObject, JSONObject], JSONObject | None]


def _metadata(name: str, namespace: str = "", gathered_by: str = "") -> JSONObject:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if gathered_by:
        labels[f"{AGGREGATE_TO}{gathered_by}"] = "true"
    meta: JSONObject = {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}}
    return {**meta, "namespace": namespace} if namespace else meta


def _role(meta: JSONObject, rules: Sequence[Rule] | None) -> JSONObject:
    # The rules are shared by all servers of a process, and a store may keep what it is given.
    return {"metadata": meta, "rules": None if rules is None else [orjson.loads(orjson.dumps(one)) for one in rules]}


def _binding(meta: JSONObject, kind: str, role: str, subjects: str) -> JSONObject:
    obj: JSONObject = {"metadata": meta, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}}
    made = []
    for word in subjects.split():
        what, _, name = word.partition("/")
        if what == "ServiceAccount":
            namespace, _, name = name.partition("/")
            made.append({"kind": what, "name": name, "namespace": namespace})
        else:
            made.append({"kind": what, "apiGroup": GROUP, "name": name})
    if made:
        obj["subjects"] = made
    return obj


def expected_cluster_roles() -> Iterator[JSONObject]:
    """All built-in cluster roles."""
    for name, gathered_by in AGGREGATED.items():
        selector = {"matchLabels": {f"{AGGREGATE_TO}{name}": "true"}}
        yield {
            **_role(_metadata(name, gathered_by=gathered_by), None),
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }
    for name, rules in CLUSTER_ROLES.items():
        yield _role(_metadata(name, gathered_by=LABELLED.get(name, "")), rules)
    for name, rules in CONTROLLERS.items():
        yield _role(_metadata(f"{_CONTROLLER}{name}"), rules)


def expected_cluster_role_bindings() -> Iterator[JSONObject]:
    """All built-in bindings of theirs."""
    for name, subjects in CLUSTER_BINDINGS.items():
        yield _binding(_metadata(name), "ClusterRole", name, subjects)
    for account in CONTROLLERS:
        name = f"{_CONTROLLER}{account}"
        yield _binding(_metadata(name), "ClusterRole", name, f"ServiceAccount/kube-system/{account}")


def expected_roles() -> Iterator[JSONObject]:
    """All built-in roles of namespaces."""
    for (namespace, name), rules in ROLES.items():
        yield _role(_metadata(name, namespace), rules)


def expected_role_bindings() -> Iterator[JSONObject]:
    """All built-in bindings of theirs."""
    for (namespace, name), (role, subjects) in BINDINGS.items():
        yield _binding(_metadata(name, namespace), "Role", role, subjects)


def compute_reconciled_role(existing: JSONObject, expected: JSONObject) -> JSONObject | None:
    """An existing role with the labels, rules and selectors that it misses; L{None} when it misses none."""
    if _opted_out(existing):
        return None
    obj = _mended_metadata(existing, expected)
    rules, wanted = existing.get("rules") or [], expected["rules"] or []
    if rules != wanted:
        missing = uncovered_rules(rules, wanted)
        if missing:
            obj["rules"] = [*rules, *missing]
    aggregation = existing.get("aggregationRule")
    if "aggregationRule" not in expected:
        obj.pop("aggregationRule", None)
    else:
        selectors = (aggregation or {}).get("clusterRoleSelectors") or []
        wanted = expected["aggregationRule"]["clusterRoleSelectors"]
        obj["aggregationRule"] = {"clusterRoleSelectors": _union(selectors, wanted)}
    return None if obj == existing else obj


def compute_reconciled_role_binding(existing: JSONObject, expected: JSONObject) -> JSONObject | None:
    """Likewise a binding: its labels and subjects."""
    if _opted_out(existing):
        return None
    obj = _mended_metadata(existing, expected)
    subjects = _union(existing.get("subjects") or [], expected.get("subjects") or [])
    if subjects:
        obj["subjects"] = subjects
    return None if obj == existing else obj


def _opted_out(existing: JSONObject) -> bool:
    annotations = existing["metadata"].get("annotations") or {}
    return bool(annotations.get(AUTOUPDATE) == "false")


def _mended_metadata(existing: JSONObject, expected: JSONObject) -> JSONObject:
    meta = dict(existing["metadata"])
    for name in ("labels", "annotations"):
        meta[name] = {**expected["metadata"][name], **(meta.get(name) or {})}
    return {**existing, "metadata": meta}


def _union(present: Sequence[JSONValue], wanted: Iterable[JSONValue]) -> list[JSONValue]:
    return [*present, *(one for one in wanted if one not in present)]


async def _reconcile(store: Store, expected: JSONObject, mend: ComputeReconciled) -> None:
    """Make an object, or mend it."""
    meta = expected["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    existing = store.get_copy(namespace, name)
    if existing is None:
        await ensure(store, expected)
        return
    scope = RequestScope(namespace)
    if not _opted_out(existing) and existing.get("roleRef") != expected.get("roleRef"):
        # roleRef is immutable: delete the binding and create it again.
        try:
            await store.delete(scope, name, DeleteOptions(precondition_uid=existing["metadata"].get("uid")))
        except APIStatusError as error:
            if error.code != 404:
                raise
        await ensure(store, expected)
        return
    if mend(existing, expected) is None:
        return

    def change(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "a patch makes nothing"
        mended = mend(obj, expected)
        if mended is None:
            return obj
        store.update_managed_fields(obj, mended, "", SERVER)
        return mended

    await store.update(scope, name, change, UpdateOptions(), patching=True)


async def reconcile(stores: Stores) -> None:
    """All of them, at the same time, so that their writes share commits."""
    cluster_roles, roles = stores.get(GROUP, "clusterroles"), stores.get(GROUP, "roles")
    cluster_bindings, bindings = stores.get(GROUP, "clusterrolebindings"), stores.get(GROUP, "rolebindings")
    namespaces = stores.get("", "namespaces")
    await _together(ensure(namespaces, {"metadata": {"name": name}}) for name in sorted({name for name, _ in ROLES}))
    everything: Sequence[tuple[Store, Iterator[JSONObject], ComputeReconciled]] = (
        (cluster_roles, expected_cluster_roles(), compute_reconciled_role),
        (cluster_bindings, expected_cluster_role_bindings(), compute_reconciled_role_binding),
        (roles, expected_roles(), compute_reconciled_role),
        (bindings, expected_role_bindings(), compute_reconciled_role_binding),
    )
    await _together(_reconcile(store, obj, mend) for store, objects, mend in everything for obj in objects)


async def _together(tasks: Iterable[JSONValue]) -> None:
    try:
        await gatherResults([Deferred.fromCoroutine(task) for task in tasks], consumeErrors=True)
    except FirstError as error:
        error.subFailure.raiseException()
