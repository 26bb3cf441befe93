"""
Reset fields: the fields that an endpoint restores in updates, and which its clients therefore cannot own.

In the reference, each strategy lists its reset fields (C{GetResetFields}); most lists are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....schema.merge.fieldset import field_set_from_paths
from ....schema.merge.ownership import Filter, Filters

if TYPE_CHECKING:
    from ..resourceinfo import ResourceInfo


def fields_except(*paths: str) -> Filter:
    """
    Return all fields of an object except some, for C{reset_fields} of L{kubetwist.interfaces.IResetFieldsProvider}.

    @param paths: The paths of fields: C{"status"}, C{"metadata.labels"}.
    """
    return Filter(excluded=field_set_from_paths([[f"f:{name}" for name in path.split(".")] for path in paths]))


EVERYTHING: Final = Filter()
EXCEPT_STATUS: Final = fields_except("status")
EXCEPT_SPEC: Final = fields_except("spec")
#: For status subresources that do not change the metadata.
EXCEPT_SPEC_AND_METADATA: Final = fields_except("spec", "metadata")

_SPECIAL: Final[dict[tuple[str, str, str], Filter]] = {
    ("", "pods", "status"): fields_except("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    # The reference lists no reset fields for these, although they restore fields.
    ("", "pods", "ephemeralcontainers"): EVERYTHING,
    ("", "pods", "resize"): EVERYTHING,
    ("", "namespaces", "finalize"): EXCEPT_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "status"): EXCEPT_SPEC_AND_METADATA,
    ("apiregistration.k8s.io", "apiservices", "status"): EXCEPT_SPEC_AND_METADATA,
    ("apps", "deployments", "status"): fields_except("spec", "metadata.labels"),
    ("certificates.k8s.io", "podcertificaterequests", ""): EVERYTHING,
    ("certificates.k8s.io", "certificatesigningrequests", ""): fields_except("spec", "status"),
    ("certificates.k8s.io", "certificatesigningrequests", "status"): fields_except("spec", "status.conditions"),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): fields_except("spec", "status.certificate"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "status"): EXCEPT_SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "status"): EXCEPT_SPEC_AND_METADATA,
    ("networking.k8s.io", "servicecidrs", "status"): EXCEPT_SPEC_AND_METADATA,
    ("resource.k8s.io", "devicetaintrules", "status"): EXCEPT_SPEC_AND_METADATA,
    ("resource.k8s.io", "resourceclaims", "status"): EXCEPT_SPEC_AND_METADATA,
    ("storage.k8s.io", "volumeattachments", "status"): EXCEPT_SPEC_AND_METADATA,
}


def reset_fields(info: ResourceInfo, subresource: str) -> Filters:
    """
    Return the fields that clients of a built-in resource may own, by API version; see
    L{kubetwist.interfaces.IResetFieldsProvider}.

    @param info: The resource.
    @param subresource: A subresource that is a part of the object; C{""} for the main resource.
    """
    fields = reset_fields_filter(info, subresource)
    return {info.gvk(version).api_version: fields for version in info.known_versions}


def reset_fields_filter(info: ResourceInfo, subresource: str) -> Filter:
    """Return the fields that clients of a built-in resource, or of a subresource unless it is C{""}, may own."""
    special = _SPECIAL.get((info.group, info.resource, subresource))
    if special is not None:
        return special
    return default_reset_fields_filter(info.subresource("status") is not None, subresource, EXCEPT_SPEC)


def default_reset_fields_filter(
    has_status: bool, subresource: str, status: Filter = EXCEPT_SPEC_AND_METADATA
) -> Filter:
    """
    Return the fields that clients of a resource without exceptions may own; the defaults are for custom resources.

    @param has_status: Whether there is a status subresource.
    @param subresource: The subresource; C{""} for the main resource.
    @param status: The fields that clients of the status subresource may own.
    """
    if subresource == "status":
        return status
    return EXCEPT_STATUS if has_status and not subresource else EVERYTHING
