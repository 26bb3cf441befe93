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
DISCOVERY: Final = 5.0
#: Maximum number of listed objects. Further objects are only counted.
LISTED: Final = 500
#: Maximum size, in bytes, of a response that is decoded at once.
TOLD: Final = 1024 * 1024
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
            details = ", ".join(f"{one}: {why}" for one, why in sorted(failures.items()))
            why = f"unable to retrieve the complete list of server APIs: {details}"
            outcome.discovery = f"Discovery failed for some groups, {len(failures)} failing: {why}"
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
        asked = [Deferred.fromCoroutine(self._discover(remote)) for remote in order]
        found: list[RemoteResource] = []
        failures: dict[str, str] = {}
        known = set(self._local)
        for remote, answer in zip(order, await gatherResults(asked), strict=True):
            if isinstance(answer, str):
                failures[str(remote.group_version)] = answer
                continue
            for resource in answer:
                if resource.group_resource not in known:
                    known.add(resource.group_resource)
                    found.append(resource)
        return found, failures

    async def _discover(self, remote: IAggregatedServer) -> list[RemoteResource] | str:
        """Return the resources of a server, or the discovery error."""
        if not remote.available:
            return f"stale GroupVersion discovery: {remote.group_version}"
        try:
            answer = await remote.fetch(remote.path, timeout=DISCOVERY)
            raise_for_status(answer)
            return list(_deletable(remote, _decoded(answer)))
        except (APIStatusError, CallError, Unreachable, ValueError) as error:
            return str(error)

    async def _empty(self, resource: RemoteResource, namespace: str, outcome: ContentDeletionResult) -> None:
        path = resource.path(namespace)
        whole = "deletecollection" in resource.verbs
        if whole:
            try:
                await self._call(resource, "DELETE", path, _DELETE)
            except APIStatusError as error:
                if error.code not in (404, 405):
                    raise
                whole = False
        if "list" not in resource.verbs:
            return
        if not whole:
            for meta in (await self._list(resource, path))[0]:
                await self._delete(resource, resource.path(namespace, meta["name"]))
        left, more = await self._list(resource, path)
        if not left and not more:
            return
        outcome.remaining[resource.group_resource] += len(left) + more
        finalizers = Counter(str(one) for meta in left for one in _list_of(meta, "finalizers"))
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
        found = _decoded(await self._call(resource, "GET", path, query=f"limit={LISTED}"))
        items = [_part(one, "metadata") for one in _list_of(found, "items")]
        remaining = _part(found, "metadata").get("remainingItemCount")
        named = [meta for meta in items if isinstance(meta.get("name"), str)]
        return named, remaining if isinstance(remaining, int) else 0

    async def _call(
        self, resource: RemoteResource, method: str, path: str, body: bytes = b"", query: str = ""
    ) -> Response:
        headers = {"Accept": [_METADATA]}
        if body:
            headers["Content-Type"] = ["application/json"]
        answer = await resource.remote.call(method, path, self._user, headers=headers, body=body, query=query)
        raise_for_status(answer)
        return answer


def _decoded(answer: Response) -> JSONObject:
    """
    Return the JSON object in a response.

    @raise ValueError: The body is not a JSON object, or it is too large.
    """
    if len(answer.body) > TOLD:
        raise ValueError(f"the answer is longer than {TOLD} bytes")
    found = orjson.loads(answer.body)
    if not isinstance(found, dict):
        raise ValueError("the answer is no object")
    return found


def _deletable(remote: IAggregatedServer, details: JSONObject) -> Collection[RemoteResource]:
    found = []
    for one in _list_of(details, "resources"):
        if not isinstance(one, dict):
            continue
        name, verbs = one.get("name"), frozenset(filter(_is_text, _list_of(one, "verbs")))
        # Subresources have a slash in their names.
        if isinstance(name, str) and name and "/" not in name and one.get("namespaced") and "delete" in verbs:
            found.append(RemoteResource(remote, name, verbs))
    return found


def _is_text(value: JSONValue) -> bool:
    return isinstance(value, str)


def _list_of(details: JSONObject, name: str) -> list[JSONValue]:
    """Return a list field of an untrusted document."""
    found = details.get(name)
    return found if isinstance(found, list) else []


def _part(details: JSONValue, name: str) -> JSONObject:
    found = details.get(name) if isinstance(details, dict) else None
    return found if isinstance(found, dict) else {}
