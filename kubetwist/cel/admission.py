"""
Variables of admission expressions: C{matchConditions} of webhooks, and policies.

See kubernetes/apiserver, C{pkg/admission/plugin/cel}.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubetwist.api.resource import JSONObject
    from kubetwist.cel.environment import Environment
    from kubetwist.cel.types import Type

#: Cost limit of all match conditions of one webhook or policy, per request.
MATCH_BUDGET: Final = 2_500_000
#: Cost limit of the validations, variables and messages of one binding of a policy, per request.
POLICY_BUDGET: Final = 10_000_000
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


@cache
def request_type() -> Type:
    """Return the type of C{request}: an C{AdmissionRequest} without uid and objects."""
    from kubetwist.cel.types import BOOL, DYN, STRING, ObjectType, list_of, map_of

    def texts(name: str, *fields: str) -> Type:
        return ObjectType(name, dict.fromkeys(fields, STRING))

    kind = texts("kubernetes.GroupVersionKind", "group", "version", "kind")
    resource = texts("kubernetes.GroupVersionResource", "group", "version", "resource")
    user = {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    }
    return ObjectType(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": STRING,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": STRING,
            "name": STRING,
            "namespace": STRING,
            "operation": STRING,
            "userInfo": ObjectType("kubernetes.UserInfo", user),
            "dryRun": BOOL,
            "options": DYN,
        },
    )


@cache
def namespace_type() -> Type:
    """Return the type of C{namespaceObject}: a namespace with the fields that policies can read."""
    from kubetwist.cel.types import INT, STRING, TIMESTAMP, ObjectType, list_of, map_of

    condition = dict.fromkeys(("status", "type", "message", "reason"), STRING)
    metadata = {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "finalizers": list_of(STRING),
    }
    status = {
        "conditions": list_of(
            ObjectType("kubernetes.NamespaceCondition", {**condition, "lastTransitionTime": TIMESTAMP})
        ),
        "phase": STRING,
    }
    return ObjectType(
        "kubernetes.Namespace",
        {
            "metadata": ObjectType("kubernetes.NamespaceMetadata", metadata),
            "spec": ObjectType("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)}),
            "status": ObjectType("kubernetes.NamespaceStatus", status),
        },
    )


@cache
def admission_environment(params: bool = False, authorizer: bool = True, patches: bool = False) -> Environment:
    """
    Return the environment of match conditions and policies.

    @param params: Whether C{params} is declared.
    @param authorizer: Whether C{authorizer} and C{authorizer.requestResource} are declared.
    @param patches: Whether the types and functions of mutations are declared.
    """
    from kubetwist.cel.library.authz import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE
    from kubetwist.cel.library.environments import kubernetes_environment
    from kubetwist.cel.types import DYN

    variables = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": namespace_type(),
        "request": request_type(),
    }
    if params:
        variables["params"] = DYN
    if authorizer:
        variables["authorizer"] = AUTHORIZER_TYPE
        variables["authorizer.requestResource"] = RESOURCE_CHECK_TYPE
    return kubernetes_environment(patches).extend(variables=variables)


def request_value(request: JSONObject, dry_run: bool, options: JSONObject | None) -> JSONObject:
    """
    Return the value of C{request}.

    @param request: An C{AdmissionRequest} without uid, objects, dryRun and options.
    """
    value = {**request, "dryRun": dry_run}
    if options is not None:
        value["options"] = options
    return value
