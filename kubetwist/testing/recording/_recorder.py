"""
What a recording keeps: the objects in the responses of a cluster, as they were before the first write.

Pure: the proxy calls it with requests and responses, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from ...api.jsontypes import JSONObject, JSONValue
from .cassette import object_name

#: Kinds that would make a server call other servers, which do not exist in a test.
_CALLING_KINDS: Final = {
    "ValidatingWebhookConfiguration": "the replay has no webhook servers",
    "MutatingWebhookConfiguration": "the replay has no webhook servers",
    "APIService": "the replay has no extension API servers",
}
#: Objects of the server itself, which each server creates, with its addresses.
_OF_SERVER: Final = frozenset((kind, "default", "kubernetes") for kind in ("Service", "Endpoints", "EndpointSlice"))
#: A config map that each server creates in each namespace, with the server's certificate.
_ROOT_CA: Final = "kube-root-ca.crt"
#: Responses with parts of objects.
_PARTIAL_KINDS: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class RecordingTooLarge(Exception):
    """The recorded objects exceed the limit."""


@frozen
class ObjectKey:
    """
    The identity of an object; the version of its API is not part of it.

    @ivar path: The path of its collection after the version, with the group: C{"apps/namespaces/default/deployments"}.
    """

    path: str
    name: str


def collection_path(group: str, namespace: str, resource: str) -> str:
    """Return the C{path} of an L{ObjectKey}."""
    return f"{group}/namespaces/{namespace}/{resource}" if namespace else f"{group}/{resource}"


class Recorder:
    """
    Collects objects.

    @ivar writes: The writes so far, as in a cassette.
    @ivar later: Objects that were created after the first write, by key.
    @ivar resources: The groups and resources of all objects.
    """

    def __init__(self, limit: int) -> None:
        """
        @param limit: Maximum size of all objects as JSON, in bytes.
        """
        self._limit = limit
        self._size = 0
        self._objects: dict[ObjectKey, tuple[JSONObject, int]] = {}
        self._written: set[ObjectKey] = set()
        self._created_uids: set[str] = set()
        #: The cluster's time before the first write, as in C{creationTimestamp}; L{None} before that.
        self._first_write_at: str | None = None
        self.writes: list[str] = []
        self.later: dict[ObjectKey, str] = {}
        self.resources: set[tuple[str, str]] = set()

    @property
    def wrote(self) -> bool:
        """Return whether there was a write."""
        return self._first_write_at is not None

    def observe(self, group: str, resource: str, response: JSONValue) -> None:
        """
        Record the objects in a response: an object, or a list.

        @param group: The group in the path of the request; likewise C{resource}.
        @raise RecordingTooLarge: There is no room for it.
        """
        if isinstance(response, dict):
            for obj in _objects_in(response):
                self._add(group, resource, obj)

    def observe_event(self, group: str, resource: str, event: JSONValue) -> None:
        """
        Record the object in an event of a watch.

        @raise RecordingTooLarge: There is no room for it.
        """
        if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
            return
        if event.get("type") in ("ADDED", "MODIFIED"):
            for obj in _objects_in(event["object"]):
                self._add(group, resource, obj)
        elif event.get("type") == "DELETED" and not self.wrote:
            for obj in _objects_in(event["object"]):
                self._drop(_key_of(group, resource, obj))

    def begin_write(self, key: ObjectKey | None, now: str) -> None:
        """
        Keep the state of an object: a write of it is about to be sent, or of objects that are not known by name.

        @param now: The cluster's time, as in C{creationTimestamp}.
        """
        if self._first_write_at is None:
            self._first_write_at = now
        if key is not None:
            self._written.add(key)

    def end_write(self, group: str, resource: str, text: str, created: JSONValue) -> None:
        """
        Record the response to a write.

        @param text: The write, as in a cassette.
        @param created: The object in the response to a POST of an object; otherwise L{None}.
        """
        self.writes.append(text)
        if isinstance(created, dict) and isinstance(created.get("metadata"), dict):
            uid = created["metadata"].get("uid")
            if uid:
                self._created_uids.add(uid)
                key = _key_of(group, resource, created)
                # A watch may have shown it before the response.
                self.later.pop(key, None)
                if key in self._objects and self._objects[key][0].get("metadata", {}).get("uid") == uid:
                    self._drop(key)

    def _add(self, group: str, resource: str, obj: JSONObject) -> None:
        key = _key_of(group, resource, obj)
        meta = obj["metadata"]
        if self._first_write_at is not None:
            # The state before the first write is kept; objects of that time that were not known yet are added.
            if key in self._written or key in self._objects or meta.get("uid") in self._created_uids:
                return
            if str(meta.get("creationTimestamp") or "") >= self._first_write_at:
                self.later[key] = object_name(obj)
                return
        size = len(json.dumps(obj))
        previous = self._objects.get(key)
        self._size += size - (previous[1] if previous else 0)
        if self._size > self._limit:
            raise RecordingTooLarge(
                f"the recorded objects exceed {self._limit >> 20} MiB at {object_name(obj)}: read fewer objects in the"
                " tests (by namespace or labels), or raise kubetwist_record_limit"
            )
        self._objects[key] = obj, size
        self.resources.add((group, resource))

    def _drop(self, key: ObjectKey) -> None:
        previous = self._objects.pop(key, None)
        if previous is not None:
            self._size -= previous[1]

    @property
    def objects(self) -> list[JSONObject]:
        """Return the recorded objects."""
        return [obj for obj, _ in self._objects.values()]

    def missing_dependencies(self) -> Iterator[str]:
        """Yield the paths of objects that the server requires before it accepts a recorded one."""
        for obj in self.objects:
            if obj.get("kind") != "Pod" or obj.get("apiVersion") != "v1":
                continue
            spec, namespace = obj.get("spec") or {}, obj["metadata"].get("namespace") or ""
            for path, resource, name in (
                (
                    collection_path("", namespace, "serviceaccounts"),
                    f"api/v1/namespaces/{namespace}/serviceaccounts",
                    spec.get("serviceAccountName"),
                ),
                (
                    "scheduling.k8s.io/priorityclasses",
                    "apis/scheduling.k8s.io/v1/priorityclasses",
                    spec.get("priorityClassName"),
                ),
                ("node.k8s.io/runtimeclasses", "apis/node.k8s.io/v1/runtimeclasses", spec.get("runtimeClassName")),
            ):
                if name and ObjectKey(path, name) not in self._objects:
                    yield f"/{resource}/{name}"

    def replayable(self, is_known: Iterable[str]) -> tuple[list[JSONObject], dict[str, str]]:
        """
        Return the objects that a server can load, and the reasons for the rest by name.

        @param is_known: The groups that are built in, or have recorded definitions.
        """
        groups = set(is_known)
        objects: list[JSONObject] = []
        omitted: dict[str, str] = {}
        for obj in self.objects:
            meta = obj["metadata"]
            group = str(obj.get("apiVersion", "")).rpartition("/")[0]
            if (obj["kind"], meta.get("namespace"), meta.get("name")) in _OF_SERVER:
                continue
            if obj["kind"] == "ConfigMap" and meta.get("name") == _ROOT_CA:
                continue
            if obj["kind"] in _CALLING_KINDS:
                if obj["kind"] == "APIService" and not (obj.get("spec") or {}).get("service"):
                    continue  # Each server creates the ones of its groups.
                omitted[object_name(obj)] = _CALLING_KINDS[obj["kind"]]
            elif group not in groups:
                omitted[object_name(obj)] = f"the replay does not serve {obj.get('apiVersion')}"
            elif obj["kind"] == "CustomResourceDefinition":
                objects.append(_without_conversion(obj))
            elif obj["kind"] == "Service":
                objects.append(_without_addresses(obj))
            else:
                objects.append(obj)
        return objects, omitted


def _without_conversion(definition: JSONObject) -> JSONObject:
    """Return a definition without its conversion webhook, and without its status, which the server sets."""
    spec = {**definition["spec"], "conversion": {"strategy": "None"}}
    return {name: value for name, value in {**definition, "spec": spec}.items() if name != "status"}


def _without_addresses(service: JSONObject) -> JSONObject:
    """Return a service without addresses of the cluster's range, which another server would refuse."""
    spec = dict(service.get("spec") or {})
    for name in ("ipFamilies", "ipFamilyPolicy"):
        spec.pop(name, None)
    if spec.get("clusterIP") != "None":
        for name in ("clusterIP", "clusterIPs"):
            spec.pop(name, None)
    return {**service, "spec": spec}


def _key_of(group: str, resource: str, obj: JSONObject) -> ObjectKey:
    meta = obj["metadata"]
    return ObjectKey(collection_path(group, meta.get("namespace") or "", resource), str(meta.get("name") or ""))


def _objects_in(response: JSONObject) -> Iterator[JSONObject]:
    """Yield the complete objects of a response: itself, or the items of a list."""
    kind = response.get("kind")
    if not isinstance(kind, str) or kind == "Status" or kind in _PARTIAL_KINDS:
        return
    items: Any = response.get("items")
    if kind.endswith("List") and isinstance(items, list):
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("metadata"), dict):
                yield {"apiVersion": response.get("apiVersion"), "kind": kind.removesuffix("List"), **item}
    elif isinstance(response.get("metadata"), dict) and response["metadata"].get("name"):
        yield response
