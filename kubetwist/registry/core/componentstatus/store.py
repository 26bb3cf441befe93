"""C{componentstatuses}: the health of the components of a control plane, checked when it is requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import Deferred, gatherResults
from zope.interface import implementer

from ....api.errors import APIStatusError
from ....api.options import GetOptions, ListOptions
from ....api.record import (
    Listing,
    Record,
)
from ....api.requestscope import RequestScope
from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....api.selectors import parse_label_selector
from ....api.tables import Describe, TableDefinition
from ....interfaces import IGetter, ILister, ITableConvertor
from ...generic.capabilities import NamedResource
from ...generic.resourceinfo import ResourceInfo

if TYPE_CHECKING:
    from ..servercontext import ServerContext

#: Addresses of the components, whose certificates are not verified: C{pkg/registry/core/rest/storage_core.go}.
_COMPONENTS: Final = (
    ("scheduler", "https://127.0.0.1:10259/healthz"),
    ("controller-manager", "https://127.0.0.1:10257/healthz"),
)
#: The name of the storage, which is healthy if this server answers.
_STORAGE: Final = "etcd-0"
#: Timeout of a health check, in seconds.
_TIMEOUT: Final = 20.0


@implementer(IGetter, ILister, ITableConvertor)
class ComponentStatuses(NamedResource):
    """
    The components of a control plane: scheduler, controller manager and storage.

    The first two are called at the default addresses of kube-scheduler and kube-controller-manager.
    """

    def __init__(self, info: ResourceInfo, context: ServerContext) -> None:
        self.info = info
        self._outgoing = context.outgoing
        self._tables = context.environment.tables
        self._zero_metadata = context.environment.zero_metadata

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{kubetwist.interfaces.ITableConvertor.table}."""
        return self._tables(kind, describe)

    async def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}."""
        if name == _STORAGE:
            return self._status(name, True, "ok")
        for component, url in _COMPONENTS:
            if name == component:
                return await self._probed(name, url)
        raise APIStatusError.not_found(GroupResource("", "componentstatus"), name)

    async def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}; components have neither labels nor a revision."""
        statuses: list[JSONObject] = []
        if parse_label_selector(options.label_selector).matches({}):
            calls = [
                Deferred.fromCoroutine(self._probed(name, url)) for name, url in _COMPONENTS if _selects(options, name)
            ]
            statuses = await gatherResults(calls)
            if _selects(options, _STORAGE):
                statuses.append(self._status(_STORAGE, True, "ok"))
        return Listing([_record(status) for status in statuses], 0)

    async def _probed(self, name: str, url: str) -> JSONObject:
        """Call a component, and return its condition, also after a failure."""
        from ....client.errors import CallError
        from ....client.restconfig import RESTConfig

        outgoing = self._outgoing
        if outgoing is None:
            return self._status(name, False, "this server calls no others")
        client = outgoing.client(RESTConfig(url=url, insecure=True))
        try:
            answer = await client.get(timeout=_TIMEOUT, accept="*/*")
        except CallError as error:
            return self._status(name, False, str(error))
        finally:
            client.retire()
        if 200 <= answer.code < 400:
            return self._status(name, True, answer.body.decode("utf-8", "replace"))
        return self._status(name, False, f"HTTP probe failed with statuscode: {answer.code}")

    def _status(self, name: str, healthy: bool, message: str) -> JSONObject:
        return {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": name, **self._zero_metadata},
            "conditions": [{"type": "Healthy", "status": "True" if healthy else "False", "message": message}],
        }


def _selects(options: ListOptions, name: str) -> bool:
    """Return whether the field selector selects a component."""
    values = {"metadata.name": name, "metadata.namespace": ""}
    return all((values.get(field) == value) is equal for field, value, equal in options.fields)


def _record(status: JSONObject) -> Record:
    name = status["metadata"]["name"]
    item = {"metadata": status["metadata"], "conditions": status["conditions"]}
    return Record(name, 0, orjson.dumps(item), {}, {})
