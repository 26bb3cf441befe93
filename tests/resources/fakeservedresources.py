"""The served resources of a small server, for tests of discovery and OpenAPI documents."""

from __future__ import annotations

from twisted.web.resource import Resource
from twisted.web.server import Request

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.resources.capabilities import ProducedResponse
from kubetwist.resources.servedresources import APIResource, ServedResources

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

PODS = APIResource(
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
    delete_returns_object=lambda: True,
)
EXEC = APIResource(
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
LOG = APIResource(
    "",
    "v1",
    "pods",
    "log",
    GroupVersionKind("", "v1", "Pod"),
    False,
    "",
    True,
    verbs=("get",),
    options="PodLogOptions",
    produced={"get": ProducedResponse(("text/plain",), None)},
)
PROXY = APIResource(
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
NAMESPACES = APIResource(
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
SCALE = APIResource(
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
DEPLOYMENTS = APIResource(
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


def autoscalers(version: str) -> APIResource:
    """Return a resource of a group with several versions."""
    return APIResource(
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


def custom(group: str, version: str) -> APIResource:
    """Return a resource that is added at run time."""
    return APIResource(
        group, version, "lamps", "", GroupVersionKind(group, version, "Lamp"), False, "lamp", True, verbs=("get",)
    )


def served_resources() -> ServedResources:
    """Return the core group, apps, and autoscaling in two versions."""
    groups = ServedResources()
    for resource in (SCALE, PROXY, PODS, LOG, EXEC, NAMESPACES, DEPLOYMENTS, autoscalers("v1"), autoscalers("v2")):
        groups.add(resource)
    return groups


APPS = GroupVersion("apps", "v1")
CORE = GroupVersion("", "v1")


class NotFound(Resource):
    """The end of a delegation chain, for any request of Twisted."""

    isLeaf = True

    def render(self, request: Request) -> bytes:
        """Answer any method."""
        request.setResponseCode(404)
        return b"404 page not found\n"
