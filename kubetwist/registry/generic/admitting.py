"""Admission for requests without a store: reviews, bindings and connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...api.admission import (
    CONNECT,
    CREATE,
    AdmissionAttributes,
)
from ...api.errors import APIStatusError
from ...api.options import CreateOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from .resourceinfo import ResourceInfo

if TYPE_CHECKING:
    from ...api.admission import AdmissionContext
    from .environment import StoreEnvironment
    from .resourceinfo import ResourceInfo


def virtual_attributes(
    info: ResourceInfo, context: AdmissionContext, scope: RequestScope, obj: JSONObject, options: CreateOptions
) -> AdmissionAttributes:
    """
    Return the admission attributes for the creation of an object that is not stored.

    @param info: The resource.
    @param context: The context of admission plugins.
    @param obj: The object.
    @param options: The options of the request.
    """
    version = scope.version or info.versions[0]
    return AdmissionAttributes(
        CREATE,
        info.group,
        version,
        info.resource,
        "",
        info.kind,
        scope.namespace,
        obj["metadata"].get("name", ""),
        obj,
        None,
        scope.user,
        options.dry_run,
        context,
        options,
        warn=scope.warn,
        annotate=scope.annotate,
        deadline=scope.deadline,
    )


async def admit_virtual(
    info: ResourceInfo,
    environment: StoreEnvironment,
    scope: RequestScope,
    obj: JSONObject,
    options: CreateOptions,
    check: Callable[[JSONObject], object] | None = None,
) -> None:
    """
    Run all admission plugins on an object that is not stored.

    @param info: The resource.
    @param environment: The admission chain and its context.
    @param obj: The object; mutating plugins may modify it.
    @param options: The options of the request.
    @param check: Validates the object between mutating and validating plugins; raises an L{APIStatusError}.
    @raise APIStatusError: A plugin rejects the request, or the object is invalid.
    """
    attributes = virtual_attributes(info, environment.context, scope, obj, options)
    await environment.admission.admit(attributes)
    if check is not None:
        check(obj)
    await environment.admission.validate(attributes)


async def admit_connection(
    info: ResourceInfo,
    environment: StoreEnvironment,
    scope: RequestScope,
    name: str,
    subresource: str,
    options: JSONObject,
) -> None:
    """
    Run all admission plugins on a request that is proxied to another server.

    @param info: The resource.
    @param environment: The admission chain and its context.
    @param name: The name of the object.
    @param subresource: The subresource: C{"exec"}.
    @param options: The query as an object of its kind: C{PodExecOptions}.
    @raise APIStatusError: A plugin rejects the request.
    """
    kind = GroupVersionKind("", "v1", options["kind"])
    attributes = AdmissionAttributes(
        CONNECT,
        info.group,
        scope.version or info.storage_version,
        info.resource,
        subresource,
        kind.kind,
        scope.namespace,
        name,
        options,
        None,
        scope.user,
        False,
        environment.context,
        request_kind=kind,
        warn=scope.warn,
        annotate=scope.annotate,
        deadline=scope.deadline,
    )
    await environment.admission.admit(attributes)
    await environment.admission.validate(attributes)


def check_namespace(scope: RequestScope, obj: JSONObject) -> None:
    """
    Set the namespace of the object to that of the request, or remove it for cluster-scoped requests.

    @raise APIStatusError: The object names another namespace (400).
    """
    meta = obj.setdefault("metadata", {})
    if not scope.namespace:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", scope.namespace) != scope.namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise APIStatusError.bad_request(text)
