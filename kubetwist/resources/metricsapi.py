"""The API C{metrics.k8s.io/v1beta1}: usage of simulated nodes and their pods, computed on request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from klein import Klein
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.jsonpath import Budget
from ..api.jsontypes import JSONValue
from ..api.options import GetOptions, ListOptions
from ..api.quantity import Quantity
from ..api.record import Listing, Record
from ..api.requestscope import RequestScope
from ..api.resource import GroupResource, GroupVersion, GroupVersionKind, JSONObject
from ..api.tables import Describe, TableDefinition
from ..controllers.fakekubelet.usage import GROUP, VERSION, SimulatedUsage
from ..http.negotiation import CUSTOM_PATCH_TYPES
from ..interfaces import IGetter, ILister, ITableConvertor
from ..registry.customresources.codec import CustomCodec
from ..registry.customresources.crd import CustomDefinition, CustomVersion
from ..registry.generic.capabilities import NamedResource
from ..registry.generic.printers.columns import NAME, Column
from ..registry.generic.reading import selection_predicate
from .endpoint import Endpoint
from .handlers.read import ReadHandlers
from .install import api_resource, group_version_path
from .openapi.custom import CustomSchemas
from .routing import RoutedApp, add_route, new_app
from .servedresources import Priority, ServedResources

if TYPE_CHECKING:
    from ..api.featuregates import FeatureGates
    from ..http.collaborators import DeferToThread
    from ..interfaces import IServerReactor
    from ..schema.definitions import Definitions
    from .handlers.watch import WatchFlusher
    from .mux import DelegatingMux

#: The priority of the group, as in the APIService of metrics-server.
PRIORITY: Final = Priority(100, 100)
GROUP_VERSION: Final = GroupVersion(GROUP, VERSION)
#: The resource version of computed objects. A watch cannot start from it.
_REVISION: Final = 1

_QUANTITIES: Final[JSONObject] = {
    "type": "object",
    "description": "The amounts that are in use, by the name of the resource.",
    "additionalProperties": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    },
}
_MEASURED: Final[JSONObject] = {
    "timestamp": {
        "type": "string",
        "format": "date-time",
        "description": "The end of the interval of the measurement.",
    },
    "window": {"type": "string", "description": "The length of the interval of the measurement, such as 15s."},
}
_CONTAINERS: Final[JSONObject] = {
    "type": "array",
    "description": "The usage of the running containers.",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "usage": _QUANTITIES}},
}


@frozen
class _Metrics:
    """
    A resource of the API.

    @ivar field: The field with the usage, besides the interval of the measurement.
    @ivar schema: The schema of the field.
    @ivar read: Returns the metrics of a namespace (C{""} for all) and a name (C{""} for all).
    """

    plural: str
    kind: str
    namespaced: bool
    field: str
    schema: JSONObject
    read: Callable[[SimulatedUsage, str, str], Awaitable[Sequence[JSONObject]]]

    def version(self, definitions: Definitions) -> CustomVersion:
        """Return the description of the version that is served."""
        properties = {**_MEASURED, self.field: self.schema}
        schema = {"type": "object", "description": f"{self.kind} is the usage of a simulated node or pod."}
        version = {
            "name": VERSION,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {**schema, "properties": properties}},
        }
        names = {"plural": self.plural, "singular": "", "kind": self.kind, "listKind": f"{self.kind}List"}
        name = f"{self.plural}.{GROUP}"
        scope = "Namespaced" if self.namespaced else "Cluster"
        crd: JSONObject = {
            "metadata": {"name": name, "uid": name},
            "spec": {"group": GROUP, "names": names, "scope": scope, "versions": [version]},
            "status": {"acceptedNames": names},
        }
        return CustomDefinition(crd, definitions, lambda crd: None).version(VERSION)


async def _pods(usage: SimulatedUsage, namespace: str, name: str) -> Sequence[JSONObject]:
    if not name:
        return await usage.pods(namespace)
    found = usage.pod(namespace, name)
    return () if found is None else (found,)


async def _nodes(usage: SimulatedUsage, namespace: str, name: str) -> Sequence[JSONObject]:
    return await usage.nodes(name)


_RESOURCES: Final = (
    _Metrics("nodes", "NodeMetrics", False, "usage", _QUANTITIES, _nodes),
    _Metrics("pods", "PodMetrics", True, "containers", _CONTAINERS, _pods),
)


@implementer(IGetter, ILister, ITableConvertor)
class MetricsStorage(NamedResource):
    """Read-only storage of the metrics of pods or nodes."""

    def __init__(self, version: CustomVersion, metrics: _Metrics, usage: SimulatedUsage) -> None:
        """
        @param version: The version that is served.
        @param metrics: The resource.
        @param usage: The usage of simulated pods and nodes.
        """
        self.info = version.definition.info
        self._metrics = metrics
        self._usage = usage

    async def get(self, scope: RequestScope, name: str, options: GetOptions) -> Record:
        """See L{IGetter.get}."""
        for obj in await self._metrics.read(self._usage, scope.namespace, name):
            return _record(obj)
        # metrics-server names the kind and the namespace, too.
        shown = f"{scope.namespace}/{name}" if scope.namespace else name
        raise APIStatusError.not_found(GroupResource(GROUP, self.info.kind.lower()), shown)

    async def list(self, scope: RequestScope, options: ListOptions) -> Listing:
        """See L{ILister.list}. There is no pagination."""
        selection = selection_predicate(self, scope, options)
        if selection.nothing:
            return Listing([], _REVISION)
        records = map(_record, await self._metrics.read(self._usage, scope.namespace, ""))
        matching = [
            record
            for record in records
            if selection.key in (None, record.key) and (selection.match is None or selection.match(record))
        ]
        return Listing(matching, _REVISION)

    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """See L{ITableConvertor.table}; with the columns of metrics-server."""
        columns = [NAME, *(Column(name, f"{name} usage") for name in _COLUMNS), Column("window", "interval")]
        return TableDefinition([one.definition(describe) for one in columns], _cells)


_COLUMNS: Final = ("cpu", "memory")


def _record(obj: JSONObject) -> Record:
    return Record.from_object(obj, _REVISION)


def _cells(obj: JSONObject, budget: Budget) -> Iterator[JSONValue]:
    """Return the cells of PodMetrics, whose containers are added, or NodeMetrics."""
    usages = [obj["usage"]] if "usage" in obj else [one["usage"] for one in obj["containers"]]
    yield obj["metadata"]["name"]
    for resource in _COLUMNS:
        amounts = [Quantity.parse(usage[resource]) for usage in usages]
        yield str(sum(amounts[1:], amounts[0]))
    yield obj["window"]


class MetricsAPI:
    """
    The API on a server of the chain.

    @ivar served_resources: Its entries in discovery and OpenAPI.
    """

    def __init__(
        self,
        mux: DelegatingMux,
        usage: SimulatedUsage,
        definitions: Definitions,
        reactor: IServerReactor,
        flusher: WatchFlusher,
        *,
        defer_to_thread: DeferToThread,
        traced: bool,
        features: FeatureGates,
    ) -> None:
        """
        @param mux: The server that serves the paths.
        @param usage: The usage of simulated pods and nodes.
        @param definitions: The types of the release.
        @param reactor: The reactor of the server.
        @param flusher: The flusher of watches; there are none.
        @param defer_to_thread: Runs long computations.
        @param traced: Whether requests are traced.
        @param features: The feature gates and the release of the server.
        """
        self.served_resources = ServedResources()
        endpoints = []
        entries = []
        for metrics in _RESOURCES:
            version = metrics.version(definitions)
            endpoint = Endpoint(
                MetricsStorage(version, metrics, usage),
                version.definition.info,
                metrics.namespaced,
                GROUP_VERSION,
                version.gvk,
                CustomCodec(version),
                defer_to_thread,
                list_items_have_kind=True,
                # As a custom resource it has no protobuf form, for which kubectl would ask first.
                patch_types=CUSTOM_PATCH_TYPES,
                traced=traced,
                features=features,
            )
            endpoints.append(endpoint)
            entries.append(evolve(api_resource(endpoint), custom=CustomSchemas(version)))
        self.served_resources.set_group_version(GROUP_VERSION, entries, PRIORITY)
        path = group_version_path(GROUP_VERSION)

        def make_app() -> Klein:
            app = new_app()
            for endpoint in endpoints:
                _route(app, path, endpoint, ReadHandlers(endpoint, reactor, flusher))
            return app

        mux.handle_prefix(path, RoutedApp(make_app))


def _route(app: Klein, base: str, endpoint: Endpoint, handlers: ReadHandlers) -> None:
    collection: Any = f"{base}/{endpoint.info.resource}"
    scoped = f"{base}/namespaces/<namespace>/{endpoint.info.resource}" if endpoint.namespaced else collection
    add_route(app, "GET", f"{scoped}/<name>", handlers.get)
    for path in dict.fromkeys((scoped, collection)):
        add_route(app, "GET", path, handlers.list)
