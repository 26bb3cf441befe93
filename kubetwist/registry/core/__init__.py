"""The core group (C{""}), one package per kind."""

from __future__ import annotations

from typing import Final

from ..generic.conversion import register_converters
from ..generic.resourceinfo import SCALE, Kind, SubresourceInfo, define_kind
from .event.conversion import CONVERTERS

_POD_SUBRESOURCES = (
    SubresourceInfo("attach", "PodAttachOptions", view="connect"),
    SubresourceInfo("binding", "Binding", view="action"),
    SubresourceInfo("ephemeralcontainers", "Pod"),
    SubresourceInfo("eviction", "Eviction", "policy", "v1", "action"),
    SubresourceInfo("exec", "PodExecOptions", view="connect"),
    SubresourceInfo("log", "Pod", view="log"),
    SubresourceInfo("portforward", "PodPortForwardOptions", view="connect"),
    SubresourceInfo("proxy", "PodProxyOptions", view="connect"),
    SubresourceInfo("resize", "Pod", since=32, gate="InPlacePodVerticalScaling"),
)

#: The resources of the group, in every release.
KINDS: Final[tuple[Kind, ...]] = (
    define_kind("", "bindings", "Binding", namespaced=True, stored=False),
    define_kind("", "componentstatuses", "ComponentStatus", short="cs", stored=False),
    define_kind("", "configmaps", "ConfigMap", namespaced=True, short="cm"),
    define_kind("", "endpoints", "Endpoints", namespaced=True, short="ep", prefix="services/endpoints"),
    define_kind("", "events", "Event", namespaced=True, short="ev"),
    define_kind("", "limitranges", "LimitRange", namespaced=True, short="limits"),
    define_kind(
        "", "namespaces", "Namespace", short="ns", status=True, subresources=(SubresourceInfo("finalize", "Namespace"),)
    ),
    define_kind(
        "",
        "nodes",
        "Node",
        short="no",
        prefix="minions",
        status=True,
        subresources=(SubresourceInfo("proxy", "NodeProxyOptions", view="connect"),),
    ),
    define_kind("", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True, short="pvc", status=True),
    define_kind("", "persistentvolumes", "PersistentVolume", short="pv", status=True),
    define_kind(
        "",
        "pods",
        "Pod",
        namespaced=True,
        short="po",
        categories="all",
        status=True,
        subresources=_POD_SUBRESOURCES,
    ),
    define_kind("", "podtemplates", "PodTemplate", namespaced=True),
    define_kind(
        "",
        "replicationcontrollers",
        "ReplicationController",
        namespaced=True,
        short="rc",
        categories="all",
        prefix="controllers",
        status=True,
        subresources=(SCALE,),
    ),
    define_kind("", "resourcequotas", "ResourceQuota", namespaced=True, short="quota", status=True),
    define_kind("", "secrets", "Secret", namespaced=True),
    define_kind(
        "",
        "serviceaccounts",
        "ServiceAccount",
        namespaced=True,
        short="sa",
        subresources=(SubresourceInfo("token", "TokenRequest", "authentication.k8s.io", "v1", "action"),),
    ),
    define_kind(
        "",
        "services",
        "Service",
        namespaced=True,
        short="svc",
        categories="all",
        prefix="services/specs",
        status=True,
        subresources=(SubresourceInfo("proxy", "ServiceProxyOptions", view="connect"),),
    ),
)

register_converters(CONVERTERS)
