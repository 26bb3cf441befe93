"""
The rows and columns that C{kubectl get} prints, for every built-in kind.

A row depends on the object alone, so that it can be made once per state and kept; ages in it are L{AgeCell}s, which are
filled in per request. Kinds without a row of their own show their name and when they were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ..api.resource import JSONObject
from .admissionregistration import printers as policies
from .apps import printers as workloads
from .core.node import printers as cluster
from .core.pod import printers as pods
from .generic.printers.ages import AgeCell, human_age, human_duration
from .generic.printers.columns import COLUMNS, DEFAULT, Describe
from .networking import printers as network
from .storage import printers as storage

__all__ = ["AgeCell", "Describe", "cells", "columns", "human_age", "human_duration", "row", "row_conditions"]

#: A text, number, flag, or age.
Cell = Any


def columns(group: str, kind: str, version: str = "", describe: Describe | None = None) -> list[JSONObject]:
    """
    The C{columnDefinitions} of a kind's Tables.

    @param version: Of the request. All versions of a kind have the same columns; it tells where to look for
        descriptions when the release does not have the version that usually has them.
    @param describe: Looks up the descriptions of fields, C{""} for those there are not; without it those columns
        have none. Types are called as in the definitions, without the leading C{io.k8s.}:
        C{describe("api.core.v1.PodStatus", "podIP")}.
    """

    def look_up(type_name: str, field: str) -> str:
        if describe is None:
            return ""
        package, _, name = type_name.rpartition(".")
        other = f"{package.rpartition('.')[0]}.{version}.{name}"
        return describe(type_name, field) or describe(other, field)

    return [column.definition(look_up) for column in COLUMNS.get(_key(group, kind), DEFAULT)]


def row(group: str, kind: str, obj: JSONObject) -> tuple[Cell | AgeCell, ...]:
    """
    The cells of an object, those for wide output included; as many as there are columns, but for IPAddress.

    @param obj: In any version of the kind, with its C{apiVersion}; it may be a zero object, as bookmarks have.
    """
    return tuple(_ROWS.get(_key(group, kind), _default_row)(obj))


def cells(group: str, kind: str, obj: JSONObject, now: float) -> list[Cell]:
    """The cells of an object as they are shown at C{now}."""
    return [cell.text(now) if isinstance(cell, AgeCell) else cell for cell in row(group, kind, obj)]


def row_order(group: str, kind: str) -> Callable[[JSONObject], Any] | None:
    """What rows of a list are sorted by, from an object as it is stored; L{None} for most, which keep their order."""
    return policies.flow_schema_order if (group, kind) == ("flowcontrol.apiserver.k8s.io", "FlowSchema") else None


def has_printer(group: str, kind: str) -> bool:
    """Return whether Tables of a kind have columns besides name and age."""
    return _key(group, kind) in _ROWS


def row_conditions(group: str, kind: str, obj: JSONObject) -> list[JSONObject]:
    """The C{conditions} of an object's row; most have none."""
    return pods.row_conditions(obj) if (group, kind) == ("", "Pod") else []


def _key(group: str, kind: str) -> tuple[str, str]:
    # A Scale is asked for by the group of what it scales.
    return ("autoscaling", kind) if kind == "Scale" else (group, kind)


def _default_row(obj: JSONObject) -> Iterator[Cell]:
    metadata = obj.get("metadata") or {}
    yield metadata.get("name", "")
    yield metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"


_ROWS: Final[dict[tuple[str, str], Callable[[JSONObject], Iterator[Cell]]]] = {
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "Service"): network.service,
    ("", "Endpoints"): network.endpoints,
    ("", "Node"): cluster.node,
    ("", "Event"): cluster.event,
    ("events.k8s.io", "Event"): cluster.event,
    ("", "Namespace"): cluster.namespace,
    ("", "Secret"): cluster.secret,
    ("", "ServiceAccount"): cluster.name_and_age,
    ("", "PersistentVolume"): storage.persistent_volume,
    ("", "PersistentVolumeClaim"): storage.persistent_volume_claim,
    ("", "ComponentStatus"): cluster.component_status,
    ("", "ConfigMap"): cluster.config_map,
    ("", "ResourceQuota"): cluster.resource_quota,
    ("", "Status"): policies.status,
    ("policy", "PodDisruptionBudget"): workloads.pod_disruption_budget,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "ControllerRevision"): workloads.controller_revision,
    ("batch", "Job"): workloads.job,
    ("batch", "CronJob"): workloads.cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.horizontal_pod_autoscaler,
    ("autoscaling", "Scale"): workloads.scale,
    ("networking.k8s.io", "Ingress"): network.ingress,
    ("networking.k8s.io", "IngressClass"): network.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): network.network_policy,
    ("networking.k8s.io", "ServiceCIDR"): network.service_cidr,
    ("networking.k8s.io", "IPAddress"): network.ip_address,
    ("networking.k8s.io", "ClusterCIDR"): network.cluster_cidr,
    ("discovery.k8s.io", "EndpointSlice"): network.endpoint_slice,
    ("rbac.authorization.k8s.io", "RoleBinding"): policies.role_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): policies.role_binding,
    ("certificates.k8s.io", "CertificateSigningRequest"): policies.certificate_signing_request,
    ("certificates.k8s.io", "ClusterTrustBundle"): policies.cluster_trust_bundle,
    ("certificates.k8s.io", "PodCertificateRequest"): policies.pod_certificate_request,
    ("coordination.k8s.io", "Lease"): cluster.lease,
    ("coordination.k8s.io", "LeaseCandidate"): cluster.lease_candidate,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
    ("storage.k8s.io", "VolumeAttributesClass"): storage.volume_attributes_class,
    ("storage.k8s.io", "VolumeAttachment"): storage.volume_attachment,
    ("storage.k8s.io", "CSINode"): storage.csi_node,
    ("storage.k8s.io", "CSIDriver"): storage.csi_driver,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): policies.webhook_configuration,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): policies.webhook_configuration,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): policies.admission_policy("validations"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): policies.admission_policy("mutations"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): policies.admission_policy_binding,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): policies.admission_policy_binding,
    ("apiregistration.k8s.io", "APIService"): policies.api_service,
    ("scheduling.k8s.io", "PriorityClass"): cluster.priority_class,
    ("node.k8s.io", "RuntimeClass"): cluster.runtime_class,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): policies.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): policies.priority_level_configuration,
    ("internal.apiserver.k8s.io", "StorageVersion"): policies.storage_version,
    ("resource.k8s.io", "DeviceClass"): cluster.name_and_age,
    ("resource.k8s.io", "ResourceClaim"): policies.resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): cluster.name_and_age,
    ("resource.k8s.io", "ResourceSlice"): policies.resource_slice,
    ("resource.k8s.io", "DeviceTaintRule"): policies.device_taint_rule,
    ("storagemigration.k8s.io", "StorageVersionMigration"): policies.storage_version_migration,
}
