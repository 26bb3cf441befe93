"""
Paths of pod specs in objects, and of containers in pod specs.

All code that inspects containers uses this module, so that no type of container is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from attrs import frozen

from .renamed import renamed_names
from .resource import JSONObject

#: The container lists of a pod spec in the reference's order, with the type of their containers.
CONTAINER_LISTS: Final = (
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
)
#: The type of containers added for debugging: they request no resources.
DEBUGGING: Final = "ephemeral container"

#: The path of the pod template by group and resource; empty for pods.
TEMPLATES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): (),
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
}


@frozen
class PodTemplate:
    """
    A pod or pod template.

    @ivar metadata: The metadata of the pod or template.
    @ivar path: Its path in the object: C{""} or C{"spec.template"}.
    """

    metadata: JSONObject
    spec: JSONObject
    path: str


def pod_template(group: str, resource: str, obj: JSONObject | None) -> PodTemplate | None:
    """Return the pod or pod template of an object; L{None} if it has none."""
    path = TEMPLATES.get((group, resource))
    if path is None or obj is None:
        return None
    container = obj
    for name in path:
        container = container.get(name) or {}
    spec = container.get("spec")
    return None if spec is None else PodTemplate(container.get("metadata") or {}, spec, ".".join(path))


def containers(spec: JSONObject, path: str = "spec") -> Iterator[tuple[JSONObject, str, str]]:
    """
    Yield all containers of a pod: init, regular and ephemeral containers.

    @param path: The path of C{spec}.
    @return: The container, its path (C{"spec.initContainers[0]"}), and its type, see L{CONTAINER_LISTS}.
    """
    for name, kind in CONTAINER_LISTS:
        listed = spec.get(name)
        if listed:
            for index, container in enumerate(listed):
                yield container, f"{path}.{name}[{index}]", kind


def declared_containers(spec: JSONObject, path: str = "spec") -> Iterator[tuple[JSONObject, str, str]]:
    """Yield all L{containers} except for ephemeral ones: the containers with which a pod is created."""
    return (result for result in containers(spec, path) if result[2] != DEBUGGING)


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"declared": "declared_containers"})
