"""A small server's worth of installed resources, for the tests of the documents that tell of them."""

from __future__ import annotations

from twisted.web.server import Request

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.resources.cacheddocuments import Leaf
from kubetwist.resources.discovery.endpoints import page_not_found
from kubetwist.resources.servedresources import InstalledGroups, InstalledResource

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

PODS = InstalledResource(
    "",
    "v1",
    "pods",
    "",
    GroupVersionKind("", "v1", "Pod"),
    False,
    "pod",
    True,
    ("po",),
    ("all",),
    ALL_VERBS,
    "hash",
    "PodList",
    delete_returns_object=True,
)
EXEC = InstalledResource(
    "",
    "v1",
    "pods",
    "exec",
    GroupVersionKind("", "v1", "PodExecOptions"),
    False,
    "",
    True,
    verbs=("create", "get"),
    connect_methods=("GET", "POST"),
)
LOG = InstalledResource("", "v1", "pods", "log", GroupVersionKind("", "v1", "Pod"), False, "", True, verbs=("get",))
PROXY = InstalledResource(
    "",
    "v1",
    "pods",
    "proxy",
    GroupVersionKind("", "v1", "PodProxyOptions"),
    False,
    "",
    True,
    verbs=("create", "get"),
    connect_methods=("GET", "HEAD"),
    connect_subpath=True,
)
NAMESPACES = InstalledResource(
    "",
    "v1",
    "namespaces",
    "",
    GroupVersionKind("", "v1", "Namespace"),
    False,
    "namespace",
    False,
    ("ns",),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    storage_version_hash="hash",
    list_kind="NamespaceList",
)
SCALE = InstalledResource(
    "apps",
    "v1",
    "deployments",
    "scale",
    GroupVersionKind("autoscaling", "v1", "Scale"),
    True,
    "",
    True,
    verbs=("get", "patch", "update"),
)
DEPLOYMENTS = InstalledResource(
    "apps",
    "v1",
    "deployments",
    "",
    GroupVersionKind("apps", "v1", "Deployment"),
    False,
    "deployment",
    True,
    ("deploy",),
    ("all",),
    ALL_VERBS,
    "hash",
    "DeploymentList",
)


def autoscalers(version: str) -> InstalledResource:
    """A resource of a group with several versions."""
    return InstalledResource(
        "autoscaling",
        version,
        "horizontalpodautoscalers",
        "",
        GroupVersionKind("autoscaling", version, "HorizontalPodAutoscaler"),
        False,
        "horizontalpodautoscaler",
        True,
        ("hpa",),
        verbs=ALL_VERBS,
    )


def custom(group: str, version: str) -> InstalledResource:
    """A resource that came while the server ran."""
    return InstalledResource(
        group, version, "lamps", "", GroupVersionKind(group, version, "Lamp"), False, "lamp", True, verbs=("get",)
    )


def installed() -> InstalledGroups:
    """The core group, apps, and autoscaling in two versions."""
    groups = InstalledGroups()
    for resource in (SCALE, PROXY, PODS, LOG, EXEC, NAMESPACES, DEPLOYMENTS, autoscalers("v1"), autoscalers("v2")):
        groups.add(resource)
    return groups


APPS = GroupVersion("apps", "v1")
CORE = GroupVersion("", "v1")


class NotFound(Leaf):
    """The end of a chain."""

    def render(self, request: Request) -> bytes:
        """Answer any method."""
        return page_not_found(request)
