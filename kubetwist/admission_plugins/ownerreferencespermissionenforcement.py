"""
OwnerReferencesPermissionEnforcement: setting owner references requires permissions.

The user must be allowed to delete the object, and to update C{finalizers} of owners whose deletion the object blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.authorization import Decision
from ..api.errors import APIStatusError
from ..api.resource import GroupVersion, JSONObject
from ..interfaces import IValidatingAdmission
from .authorization import authorize


@implementer(IValidatingAdmission)
@frozen
class OwnerReferencesPermissionEnforcement:
    """See kubernetes, C{plugin/pkg/admission/gc/gc_admission.go}."""

    name: ClassVar[str] = "OwnerReferencesPermissionEnforcement"

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        if (attributes.group, attributes.resource, attributes.subresource) == ("", "pods", "status"):
            # The status strategy keeps the old owners, and old kubelets send invalid ones.
            return
        new = _owners(attributes.object)
        if new is None:
            return
        if attributes.operation == "CREATE":
            old: list[JSONObject] = []
        else:
            old_owners = _owners(attributes.old_object)
            if old_owners is None:
                return
            old = old_owners
        if new == old:
            return
        if attributes.operation != "CREATE":
            await _check_delete_permission(attributes)
        for owner in _new_blocking_owner_refs(new, old):
            await _check_finalizers_permission(attributes, owner)


def _owners(obj: JSONObject | None) -> list[JSONObject] | None:
    """Return the owners of an object; L{None} for objects without metadata."""
    meta = (obj or {}).get("metadata")
    return list(meta.get("ownerReferences") or ()) if isinstance(meta, dict) else None


def _new_blocking_owner_refs(new: list[JSONObject], old: list[JSONObject]) -> Iterator[JSONObject]:
    """Return the owners whose deletion the object newly blocks."""
    blocking = {owner.get("uid") for owner in old if owner.get("blockOwnerDeletion")}
    for owner in new:
        if owner.get("blockOwnerDeletion") and owner.get("uid") not in blocking:
            yield owner


async def _check_delete_permission(attributes: AdmissionAttributes) -> None:
    verdict = await authorize(
        attributes,
        "delete",
        group=attributes.group,
        version=attributes.version,
        resource=attributes.resource,
        subresource=attributes.subresource,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    if verdict.decision is not Decision.ALLOW:
        raise attributes.forbidden(f"cannot set an ownerRef on a resource you can't delete: {verdict.reason}, <nil>")


async def _check_finalizers_permission(attributes: AdmissionAttributes, owner: JSONObject) -> None:
    api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    try:
        version = GroupVersion.parse(api_version)
    except ValueError as error:
        raise _rest_mapping_error(attributes, api_version, kind, str(error)) from error
    mappings = attributes.context.resources_for_kind(version.group, version.version, kind)
    if not mappings:
        message = f'no matches for kind "{kind}" in version "{api_version}"'
        raise _rest_mapping_error(attributes, api_version, kind, message)
    for resource, namespaced in mappings:
        verdict = await authorize(
            attributes,
            "update",
            group=version.group,
            version=version.version,
            resource=resource,
            subresource="finalizers",
            namespace=attributes.namespace if namespaced else "",
            name=owner.get("name") or "",
        )
        if verdict.decision is not Decision.ALLOW:
            message = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
                f"{verdict.reason}, <nil>"
            )
            raise attributes.forbidden(message)


def _rest_mapping_error(attributes: AdmissionAttributes, api_version: str, kind: str, message: str) -> APIStatusError:
    return attributes.forbidden(
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
        f"APIVersion {api_version} Kind {kind}: {message}"
    )
