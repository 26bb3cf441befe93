"""Unit tests of admission plugins: a write, and a stub of the server; no server is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from attrs import define, field

from ..api.admission import (
    RENAMED_CONTEXT_METHODS,
    AdmissionAttributes,
    AdmissionContext,
    Commit,
    ReinvocationContext,
)
from ..api.errors import APIStatusError
from ..api.frozen import frozen
from ..api.options import CreateOptions, DeleteOptions, UpdateOptions
from ..api.renamed import renamed_attributes
from ..api.resource import GroupResource, GroupVersion, JSONObject, UserInfo


@define
class StubServer:
    """
    An L{kubetwist.api.admission.AdmissionContext} with some objects.

    @ivar objects: By group, resource, namespace and name.
    @ivar kinds: The resource, and whether it is namespaced, by group, version and kind.
    @ivar authorizer: As L{kubetwist.interfaces.IAuthorizer}; L{None} without one.
    @ivar reactor: For plugins that wait; L{None} by default.
    """

    objects: dict[tuple[str, str, str, str], JSONObject] = field(factory=dict)
    kinds: dict[tuple[str, str, str], tuple[str, bool]] = field(factory=dict)
    authorizer: Any = None
    reactor: Any = None
    outgoing: Any = None
    release: str = "1.36"
    toleration_seconds: tuple[int, int] = (300, 300)

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("StubServer", RENAMED_CONTEXT_METHODS)

    def add(self, group: str, resource: str, obj: JSONObject) -> StubServer:
        """Add an object in its storage version."""
        meta = obj["metadata"]
        self.objects[group, resource, meta.get("namespace", ""), meta["name"]] = obj
        return self

    def _select(self, group: str, resource: str, namespace: str) -> Iterable[JSONObject]:
        for (in_group, of_resource, in_namespace, _), obj in sorted(self.objects.items()):
            if (in_group, of_resource) == (group, resource) and namespace in ("", in_namespace):
                yield obj

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{AdmissionContext.get_decoded}."""
        obj = self.objects.get((group, resource, namespace, name))
        return None if obj is None else frozen(obj)

    async def wait_for_object(
        self, group: str, resource: str, namespace: str, name: str, seconds: float
    ) -> JSONObject | None:
        """See L{AdmissionContext.wait_for_object}; objects never appear here."""
        return self.get_decoded(group, resource, namespace, name)

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{AdmissionContext.list_decoded}."""
        return [frozen(obj) for obj in self._select(group, resource, namespace)]

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{AdmissionContext.get_copy}."""
        obj = self.objects.get((group, resource, namespace, name))
        return None if obj is None else _copy(obj)

    def list_copies(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{AdmissionContext.list_copies}."""
        return [_copy(obj) for obj in self._select(group, resource, namespace)]

    async def ensure_cached(self, group: str, resource: str) -> bool:
        """Return whether there is an object of the resource."""
        return any(key[:2] == (group, resource) for key in self.objects)

    def list_lazy(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """See L{AdmissionContext.list_lazy}."""
        return [partial(_copy, obj) for obj in self._select(group, resource, namespace)]

    def resources_for_kind(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """Return the resources in C{kinds}."""
        found = self.kinds.get((group, version, kind))
        return [] if found is None else [found]

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """See L{AdmissionContext.create}; no defaults are set."""
        key = group, resource, namespace, obj["metadata"]["name"]
        if key in self.objects:
            raise APIStatusError.already_exists(GroupResource(group, resource), key[3])
        self.objects[key] = obj

    async def commit_with_status_updates(
        self,
        commit: Commit,
        group: str,
        resource: str,
        namespace: str,
        names: Sequence[str],
        change: Callable[[JSONObject], None],
    ) -> int:
        """See L{AdmissionContext.commit_with_status_updates}; further writes are ignored."""
        changed = {
            key: _copy(self.objects[key])
            for key in ((group, resource, namespace, name) for name in names)
            if key in self.objects
        }
        for obj in changed.values():
            change(obj)
        revision = await commit(())
        self.objects.update(changed)
        return revision


def _copy(obj: JSONObject) -> JSONObject:
    copied: JSONObject = orjson.loads(orjson.dumps(obj))
    return copied


def write(
    obj: JSONObject | None,
    resource: str = "pods",
    operation: str = "CREATE",
    *,
    api_version: str = "v1",
    kind: str = "Pod",
    subresource: str = "",
    namespace: str = "default",
    old: JSONObject | None = None,
    user: UserInfo | None = None,
    dry_run: bool = False,
    server: AdmissionContext | None = None,
    warn: Callable[[str], Any] | None = None,
) -> AdmissionAttributes:
    """
    Return the attributes of a write, as admission plugins get them in the first round.

    @param obj: The new object, which mutating plugins change; L{None} for DELETE.
    @param api_version: The API version of the resource: C{"v1"}, C{"apps/v1"}.
    @param namespace: C{""} for cluster-scoped objects.
    @param old: The object before.
    @param server: By default a L{StubServer} with nothing in it.
    @param warn: Called with warnings; C{[].append} collects them.
    @return: The attributes; C{annotations} contains the plugin's audit annotations.
    """
    group_version = GroupVersion.parse(api_version)
    name = ((obj if obj is not None else old) or {}).get("metadata", {}).get("name", "")
    options = {"CREATE": CreateOptions, "UPDATE": UpdateOptions, "DELETE": DeleteOptions}.get(operation)
    attributes = AdmissionAttributes(
        operation,
        group_version.group,
        group_version.version,
        resource,
        subresource,
        kind,
        namespace,
        name,
        obj,
        old,
        user or UserInfo("alice", groups=("system:authenticated",)),
        dry_run,
        StubServer() if server is None else server,
        None if options is None else options(dry_run=dry_run),
        warn=warn,
    )
    attributes.reinvocation = ReinvocationContext()
    return attributes
