"""
Paths of pod specs in objects, and of containers in pod specs.

All code that inspects containers uses this module, so that no kind of container is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from .resource import JSONObject

#: The lists of containers in a spec, in the order that the reference visits them, and what kind of container they have.
CONTAINER_LISTS: Final = (
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
)
#: The kind of containers added to a pod for debugging: they request no resources.
DEBUGGING: Final = "ephemeral container"

#: By group and resource, where the template of the pods is that an object makes; a pod is its own.
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
    A pod, or what pods are made of.

    @ivar metadata: Its own, not that of the object around it.
    @ivar path: Of it in the object: C{""} or C{"spec.template"}.
    """

    metadata: JSONObject
    spec: JSONObject
    path: str


def pod_template(group: str, resource: str, obj: JSONObject | None) -> PodTemplate | None:
    """Return the pod in an object; L{None} where the resource has none, or this object does not."""
    way = TEMPLATES.get((group, resource))
    if way is None or obj is None:
        return None
    found = obj
    for name in way:
        found = found.get(name) or {}
    spec = found.get("spec")
    return None if spec is None else PodTemplate(found.get("metadata") or {}, spec, ".".join(way))


def containers(spec: JSONObject, path: str = "spec") -> Iterator[tuple[JSONObject, str, str]]:
    """
    Return every container of a pod: those that start it, those that are it, and those that were added for debugging.

    @param path: Of C{spec}.
    @return: The container, its path (C{"spec.initContainers[0]"}), and what kind it is, of L{CONTAINER_LISTS}.
    """
    for name, kind in CONTAINER_LISTS:
        listed = spec.get(name)
        if listed:
            for index, container in enumerate(listed):
                yield container, f"{path}.{name}[{index}]", kind


def declared(spec: JSONObject, path: str = "spec") -> Iterator[tuple[JSONObject, str, str]]:
    """Return all L{containers} except ephemeral ones: the containers that a pod is created with."""
    return (found for found in containers(spec, path) if found[2] != DEBUGGING)
