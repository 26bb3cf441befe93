"""
Deletes the content of aggregated API servers in a namespace.

@see: kubernetes, C{pkg/controller/namespace/deletion/namespaced_resources_deleter.go}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import quote

import orjson
from attrs import frozen

from twisted.internet.defer import Deferred, gatherResults

from ...api.errors import APIStatusError
from ...api.jsontypes import JSONValue
from ...api.resource import GroupResource, GroupVersion, JSONObject, UserInfo
from ...client.errors import CallError, Unreachable
from ...client.httpclient import Response
from ...client.responses import raise_for_status
from ...registry.generic.resourceinfo import ResourceInfo
from ..machinery.aggregated import IAggregatedServer, IAggregation
from .conditions import ContentDeletionResult

#: Timeout of discovery, in seconds.
DISCOVERY_TIMEOUT: Final = 5.0
#: Maximum number of listed objects. Further objects are only counted.
MAX_LISTED_OBJECTS: Final = 500
#: Maximum size, in bytes, of a response that is decoded at once.
MAX_RESPONSE_BYTES: Final = 1024 * 1024
#: Seconds that finalizers are expected to take.
FINALIZER_SECONDS: Final = 15

_METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_DELETE: Final = orjson.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})


@frozen
class RemoteResource:
    """A namespaced resource of an aggregated API server whose objects can be deleted."""

    remote: IAggregatedServer
    name: str
    verbs: frozenset[str]

    @property
    def group_resource(self) -> GroupResource:
        """The group and resource, without the version."""
        return GroupResource(self.remote.group_version.group, self.name)

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the objects in a namespace, or of one object."""
        parts = ["namespaces", namespace, self.name, *([name] if name else ())]
        return "/".join((self.remote.path, *(quote(part, safe="") for part in parts)))


class AggregatedContentDeleter:
    """Deletes content of aggregated API servers on behalf of a controller."""

    def __init__(self, aggregation: IAggregation, user: UserInfo, local: Iterable[ResourceInfo] = ()) -> None:
        """
        @param user: The user of the requests.
        @param local: Resources served by this server, in any version. They are not deleted here.
        """
        self._aggregation = aggregation
        self._user = user
        self._local = {
            info.group_resource
            for info in local
            if not all(GroupVersion(info.group, version) in aggregation.aggregated_servers for version in info.versions)
        }

    async def empty(self, namespace: str, outcome: ContentDeletionResult) -> None:
        """Delete the content of aggregated API servers in a namespace, and add the result to C{outcome}."""
        resources, failures = await self.discover()
        if failures:
            details = ", ".join(f"{one}: {message}" for one, message in sorted(failures.items()))
            message = f"unable to retrieve the complete list of server APIs: {details}"
            outcome.discovery = f"Discovery failed for some groups, {len(failures)} failing: {message}"
        for resource in resources:
            try:
                await self._empty(resource, namespace, outcome)
            except APIStatusError as error:
                if error.code not in (404, 405):
                    outcome.failures.append(str(error))
            except (CallError, Unreachable, ValueError) as error:
                outcome.failures.append(str(error))

    async def discover(self) -> tuple[list[RemoteResource], dict[str, str]]:
        """Return the deletable resources in their preferred versions, and the discovery errors."""
        aggregated_servers = self._aggregation.aggregated_servers
        order = [
            aggregated_servers[one]
            for one in self._aggregation.api_services.group_versions()
            if one in aggregated_servers
        ]
        pending = [Deferred.fromCoroutine(self._discover(remote)) for remote in order]
        resources: list[RemoteResource] = []
        failures: dict[str, str] = {}
        known = set(self._local)
        for remote, result in zip(order, await gatherResults(pending), strict=True):
            if isinstance(result, str):
                failures[str(remote.group_version)] = result
                continue
            for resource in result:
                if resource.group_resource not in known:
                    known.add(resource.group_resource)
                    resources.append(resource)
        return resources, failures

    async def _discover(self, remote: IAggregatedServer) -> list[RemoteResource] | str:
        """Return the resources of a server, or the discovery error."""
        if not remote.available:
            return f"stale GroupVersion discovery: {remote.group_version}"
        try:
            response = await remote.fetch(remote.path, timeout=DISCOVERY_TIMEOUT)
            raise_for_status(response)
            return list(_deletable(remote, _decoded(response)))
        except (APIStatusError, CallError, Unreachable, ValueError) as error:
            return str(error)

    async def _empty(self, resource: RemoteResource, namespace: str, outcome: ContentDeletionResult) -> None:
        path = resource.path(namespace)
        collection_deleted = "deletecollection" in resource.verbs
        if collection_deleted:
            try:
                await self._call(resource, "DELETE", path, _DELETE)
            except APIStatusError as error:
                if error.code not in (404, 405):
                    raise
                collection_deleted = False
        if "list" not in resource.verbs:
            return
        if not collection_deleted:
            for meta in (await self._list(resource, path))[0]:
                await self._delete(resource, resource.path(namespace, meta["name"]))
        remaining, further = await self._list(resource, path)
        if not remaining and not further:
            return
        outcome.remaining[resource.group_resource] += len(remaining) + further
        finalizers = Counter(str(one) for meta in remaining for one in _list_field(meta, "finalizers"))
        outcome.finalizers.update(finalizers)
        if finalizers:
            outcome.estimate = max(outcome.estimate, FINALIZER_SECONDS)
        else:
            kind = f"{resource.remote.group_version}, Resource={resource.name}"
            outcome.failures.append(f"unexpected items still remain in namespace: {namespace} for gvr: {kind}")

    async def _delete(self, resource: RemoteResource, path: str) -> None:
        try:
            await self._call(resource, "DELETE", path, _DELETE)
        except APIStatusError as error:
            if error.code != 404:
                raise

    async def _list(self, resource: RemoteResource, path: str) -> tuple[list[JSONObject], int]:
        """Return the metadata of the first objects, and the number of further objects."""
        document = _decoded(await self._call(resource, "GET", path, query=f"limit={MAX_LISTED_OBJECTS}"))
        items = [_object_field(one, "metadata") for one in _list_field(document, "items")]
        remaining = _object_field(document, "metadata").get("remainingItemCount")
        named = [meta for meta in items if isinstance(meta.get("name"), str)]
        return named, remaining if isinstance(remaining, int) else 0

    async def _call(
        self, resource: RemoteResource, method: str, path: str, body: bytes = b"", query: str = ""
    ) -> Response:
        headers = {"Accept": [_METADATA]}
        if body:
            headers["Content-Type"] = ["application/json"]
        response = await resource.remote.call(method, path, self._user, headers=headers, body=body, query=query)
        raise_for_status(response)
        return response


def _decoded(response: Response) -> JSONObject:
    """
    Return the JSON object in a response.

    @raise ValueError: The body is not a JSON object, or it is too large.
    """
    if len(response.body) > MAX_RESPONSE_BYTES:
        raise ValueError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
    document = orjson.loads(response.body)
    if not isinstance(document, dict):
        raise ValueError("the response is not a JSON object")
    return document


def _deletable(remote: IAggregatedServer, details: JSONObject) -> Collection[RemoteResource]:
    resources = []
    for one in _list_field(details, "resources"):
        if not isinstance(one, dict):
            continue
        name, verbs = one.get("name"), frozenset(filter(_is_string, _list_field(one, "verbs")))
        # Subresources have a slash in their names.
        if isinstance(name, str) and name and "/" not in name and one.get("namespaced") and "delete" in verbs:
            resources.append(RemoteResource(remote, name, verbs))
    return resources


def _is_string(value: JSONValue) -> bool:
    return isinstance(value, str)


def _list_field(details: JSONObject, name: str) -> list[JSONValue]:
    """Return a list field of an untrusted document."""
    value = details.get(name)
    return value if isinstance(value, list) else []


def _object_field(details: JSONValue, name: str) -> JSONObject:
    value = details.get(name) if isinstance(details, dict) else None
    return value if isinstance(value, dict) else {}
