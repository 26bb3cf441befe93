"""
Reconciliation of the built-in roles and bindings at the start of a server.

As in the reference, missing objects are created, and missing rules and subjects are added; additional ones are kept.
The annotation L{AUTOUPDATE} excludes an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred, FirstError, gatherResults

from ....api.errors import APIStatusError
from ....api.featuregates import FeatureGates
from ....api.jsontypes import JSONValue
from ....api.options import DeleteOptions, UpdateOptions
from ....api.rbacrules import Rule, uncovered_rules
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ...generic.bootstrap import SERVER, ensure
from ..ruleresolver import GROUP
from .controllerroles import CONTROLLERS
from .roles import AGGREGATED, BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, LABELLED, ROLES
from .rules import rules_of

if TYPE_CHECKING:
    from ...generic.store import Store
    from ...stores import Stores

#: The annotation that excludes an object from reconciliation if it is C{"false"}.
AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
#: The prefix of the label of roles that are aggregated, which is followed by the name of the aggregating role.
AGGREGATE_TO: Final = "rbac.authorization.k8s.io/aggregate-to-"
_CONTROLLER: Final = "system:controller:"

#: Returns an existing object with the missing parts of the expected one; L{None} if nothing is missing.
ComputeReconciled = Callable[[JSONObject, JSONObject], JSONObject | None]


def _metadata(name: str, namespace: str = "", aggregate_to: str = "") -> JSONObject:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if aggregate_to:
        labels[f"{AGGREGATE_TO}{aggregate_to}"] = "true"
    meta: JSONObject = {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}}
    return {**meta, "namespace": namespace} if namespace else meta


def _role(meta: JSONObject, rules: Sequence[Rule] | None) -> JSONObject:
    return {"metadata": meta, "rules": rules}


def _binding(meta: JSONObject, kind: str, role: str, subjects: str) -> JSONObject:
    obj: JSONObject = {"metadata": meta, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}}
    subject_objects = []
    for word in subjects.split():
        subject_kind, _, name = word.partition("/")
        if subject_kind == "ServiceAccount":
            namespace, _, name = name.partition("/")
            subject_objects.append({"kind": subject_kind, "name": name, "namespace": namespace})
        else:
            subject_objects.append({"kind": subject_kind, "apiGroup": GROUP, "name": name})
    if subject_objects:
        obj["subjects"] = subject_objects
    return obj


def _cluster_rules(features: FeatureGates) -> Iterator[tuple[str, list[Rule]]]:
    """Return the ClusterRoles without an aggregation rule: name and rules."""
    for name, templates in CLUSTER_ROLES.items():
        yield name, rules_of(templates, features)
    for account, templates in CONTROLLERS.items():
        yield f"{_CONTROLLER}{account}", rules_of(templates, features)


def expected_cluster_roles(features: FeatureGates) -> Iterator[JSONObject]:
    """Return the built-in ClusterRoles of a server with C{features}."""
    for name, aggregate_to in AGGREGATED.items():
        selector = {"matchLabels": {f"{AGGREGATE_TO}{name}": "true"}}
        yield {
            **_role(_metadata(name, aggregate_to=aggregate_to), None),
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }
    for name, rules in _cluster_rules(features):
        if rules:
            yield _role(_metadata(name, aggregate_to=LABELLED.get(name, "")), rules)


def expected_cluster_role_bindings(features: FeatureGates) -> Iterator[JSONObject]:
    """Return the built-in ClusterRoleBindings of a server with C{features}."""
    bindings = dict(CLUSTER_BINDINGS)
    bindings.update((f"{_CONTROLLER}{account}", f"ServiceAccount/kube-system/{account}") for account in CONTROLLERS)
    for name, rules in _cluster_rules(features):
        if rules and name in bindings:
            yield _binding(_metadata(name), "ClusterRole", name, bindings[name])


def expected_roles(features: FeatureGates) -> Iterator[JSONObject]:
    """Return the built-in Roles of a server with C{features}."""
    for (namespace, name), templates in ROLES.items():
        yield _role(_metadata(name, namespace), rules_of(templates, features))


def expected_role_bindings() -> Iterator[JSONObject]:
    """Return the built-in RoleBindings."""
    for (namespace, name), (role, subjects) in BINDINGS.items():
        yield _binding(_metadata(name, namespace), "Role", role, subjects)


def metrics_reader() -> JSONObject:
    """
    Return the ClusterRole with which the roles view, edit and admin permit reads of C{metrics.k8s.io}.

    @see: kubernetes-sigs/metrics-server, C{manifests/base/rbac.yaml}.
    """
    labels = {"k8s-app": "metrics-server", **{f"{AGGREGATE_TO}{name}": "true" for name in AGGREGATED}}
    rule = {"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}
    return _role({"name": "system:aggregated-metrics-reader", "labels": labels}, [rule])


def compute_reconciled_role(existing: JSONObject, expected: JSONObject) -> JSONObject | None:
    """Return an existing role with missing labels, rules and selectors added; L{None} if none are missing."""
    if _opted_out(existing):
        return None
    obj = _reconciled_metadata(existing, expected)
    rules, expected_rules = existing.get("rules") or [], expected["rules"] or []
    if rules != expected_rules:
        missing = uncovered_rules(rules, expected_rules)
        if missing:
            obj["rules"] = [*rules, *missing]
    aggregation = existing.get("aggregationRule")
    if "aggregationRule" not in expected:
        obj.pop("aggregationRule", None)
    else:
        selectors = (aggregation or {}).get("clusterRoleSelectors") or []
        expected_selectors = expected["aggregationRule"]["clusterRoleSelectors"]
        obj["aggregationRule"] = {"clusterRoleSelectors": _union(selectors, expected_selectors)}
    return None if obj == existing else obj


def compute_reconciled_role_binding(existing: JSONObject, expected: JSONObject) -> JSONObject | None:
    """Return an existing binding with missing labels and subjects added; L{None} if none are missing."""
    if _opted_out(existing):
        return None
    obj = _reconciled_metadata(existing, expected)
    subjects = _union(existing.get("subjects") or [], expected.get("subjects") or [])
    if subjects:
        obj["subjects"] = subjects
    return None if obj == existing else obj


def _opted_out(existing: JSONObject) -> bool:
    annotations = existing["metadata"].get("annotations") or {}
    return bool(annotations.get(AUTOUPDATE) == "false")


def _reconciled_metadata(existing: JSONObject, expected: JSONObject) -> JSONObject:
    meta = dict(existing["metadata"])
    for name in ("labels", "annotations"):
        meta[name] = {**expected["metadata"][name], **(meta.get(name) or {})}
    return {**existing, "metadata": meta}


def _union(existing: Sequence[JSONValue], expected: Iterable[JSONValue]) -> list[JSONValue]:
    return [*existing, *(item for item in expected if item not in existing)]


async def _reconcile(store: Store, expected: JSONObject, compute: ComputeReconciled) -> None:
    """Create an object, or add the missing parts to the existing one."""
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
    if compute(existing, expected) is None:
        return

    def change(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "a patch does not create objects"
        reconciled = compute(obj, expected)
        if reconciled is None:
            return obj
        store.update_managed_fields(obj, reconciled, "", SERVER)
        return reconciled

    await store.update(scope, name, change, UpdateOptions(), patching=True)


async def reconcile(stores: Stores, features: FeatureGates, *, metrics: bool = False) -> None:
    """
    Reconcile all built-in roles and bindings concurrently, so that their writes share transactions.

    @param stores: The stores of the server.
    @param features: Its feature gates and release, which the rules depend on.
    @param metrics: Whether the server serves C{metrics.k8s.io}.
    """
    cluster_roles, roles = stores.get(GROUP, "clusterroles"), stores.get(GROUP, "roles")
    cluster_bindings, bindings = stores.get(GROUP, "clusterrolebindings"), stores.get(GROUP, "rolebindings")
    namespaces = stores.get("", "namespaces")
    await _gather(ensure(namespaces, {"metadata": {"name": name}}) for name in sorted({name for name, _ in ROLES}))
    reconciliations: Sequence[tuple[Store, Iterator[JSONObject], ComputeReconciled]] = (
        (cluster_roles, expected_cluster_roles(features), compute_reconciled_role),
        (cluster_bindings, expected_cluster_role_bindings(features), compute_reconciled_role_binding),
        (roles, expected_roles(features), compute_reconciled_role),
        (bindings, expected_role_bindings(), compute_reconciled_role_binding),
    )
    if metrics:
        await ensure(cluster_roles, metrics_reader())
    await _gather(_reconcile(store, obj, compute) for store, objects, compute in reconciliations for obj in objects)


async def _gather(tasks: Iterable[JSONValue]) -> None:
    try:
        await gatherResults([Deferred.fromCoroutine(task) for task in tasks], consumeErrors=True)
    except FirstError as error:
        error.subFailure.raiseException()
