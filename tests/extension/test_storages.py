"""Tests of L{kubetwist.extension._storages}: storage objects of third parties, over HTTP in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer, implementer_only
from zope.interface.verify import verifyObject

from kubetwist.api.errors import APIStatusError
from kubetwist.api.record import Listing, Record
from kubetwist.api.resource import GroupResource, GroupVersion, GroupVersionKind
from kubetwist.api.tables import TableDefinition
from kubetwist.extension import fields_except
from kubetwist.extension._resources import BadResource
from kubetwist.extension._server import _Resources
from kubetwist.interfaces import (
    ICategoriesProvider,
    ICreator,
    IGetter,
    IGetterWithOptions,
    IGracefulDeleter,
    ILister,
    IResetFieldsProvider,
    IScoper,
    IShortNamesProvider,
    ISingularNameProvider,
    IStorageMetadata,
    IStorageVersionProvider,
    ITableConvertor,
)
from kubetwist.registry.generic.resourceinfo import storage_version_hash
from kubetwist.resources.handlers.watch import WatchFlusher
from tests.extension.test_resources import FORTUNE
from tests.resources.openapi.test_operations import paths_of
from tests.resources.server import Server, definitions

GROUP = "/apis/fun.example.com/v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def fortune(name: str, text: str = "", **meta: Any) -> dict[str, Any]:
    """Return an object."""
    return {
        "apiVersion": "fun.example.com/v1",
        "kind": "Fortune",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", **meta},
        "spec": {"text": text},
    }


@implementer(IScoper, IGetter, ILister)
class Bare:
    """A read-only storage object that states its scope only."""

    namespace_scoped = True

    async def get(self, scope: Any, name: str, options: Any) -> Record:
        """See L{IGetter.get}."""
        if name != "a":
            raise APIStatusError.not_found(GroupResource("fun.example.com", "fortunes"), name)
        return Record.from_object(fortune("a", "hello", namespace=scope.namespace), 7)

    async def list(self, scope: Any, options: Any) -> Listing:
        """See L{ILister.list}."""
        return Listing([Record.from_object(fortune("a", "hello", namespace="default"), 7)], 7)


@implementer(
    IScoper,
    ICreator,
    IGetterWithOptions,
    ILister,
    IGracefulDeleter,
    ISingularNameProvider,
    IShortNamesProvider,
    ICategoriesProvider,
    IStorageVersionProvider,
    ITableConvertor,
    IResetFieldsProvider,
    IStorageMetadata,
)
class Full:
    """A storage object in a dictionary that states everything."""

    namespace_scoped = False
    singular_name = "proverb"
    short_names = ("pr", "fo")
    categories = ("all",)
    storage_version = GroupVersionKind("fun.example.com", "v1alpha1", "Fortune")
    options_kind = GroupVersionKind("", "v1", "PodLogOptions")

    def __init__(self) -> None:
        self.objects: dict[str, Record] = {}
        self.reset_fields = {"fun.example.com/v1": fields_except("spec")}

    def produced_media_types(self, verb: str) -> tuple[str, ...]:
        """See L{IStorageMetadata.produced_media_types}."""
        return ("text/plain",) if verb == "get" else ()

    def produced_kind(self, verb: str) -> GroupVersionKind | None:
        """See L{IStorageMetadata.produced_kind}."""
        return None if verb == "get" else GroupVersionKind("", "v1", "Pod")

    def table(self, kind: GroupVersionKind, describe: Any) -> TableDefinition:
        """See L{ITableConvertor.table}."""
        columns = [{"name": "Text", "type": "string", "format": "", "description": kind.kind, "priority": 0}]
        return TableDefinition(
            columns, lambda obj, budget: [obj["spec"]["text"]], sort_key=lambda obj: obj["spec"]["text"]
        )

    def decode_options(self, query: Any) -> bool:
        """See L{IGetterWithOptions.decode_options}."""
        if query.get("loud", ["true"]) != ["true"]:
            raise APIStatusError.bad_request("loud must be true")
        return "loud" in query

    async def get_with_options(self, scope: Any, name: str, options: bool) -> Record | dict[str, Any] | None:
        """See L{IGetterWithOptions.get_with_options}."""
        record = self.objects.get(name)
        return fortune(name, "LOUD") if options and record is not None else record

    async def create(self, scope: Any, obj: dict[str, Any], options: Any) -> Record:
        """See L{ICreator.create}."""
        record = self.objects[obj["metadata"]["name"]] = Record.from_object(obj, len(self.objects) + 1)
        return record

    async def list(self, scope: Any, options: Any) -> Listing:
        """See L{ILister.list}."""
        return Listing(list(self.objects.values()), len(self.objects))

    async def delete(self, scope: Any, name: str, options: Any) -> tuple[Record, bool]:
        """See L{IGracefulDeleter.delete}."""
        return self.objects.pop(name), True


@implementer_only(IScoper, ICreator)
class NoResetFields(Full):
    """A storage object with one verb; its attributes of other interfaces are ignored."""


class StorageTests(SynchronousTestCase):
    """Resources with a storage object."""

    def serve(self, storage: Any) -> Any:
        """Serve a storage object; return a client."""
        server = self.server = Server(types=definitions())
        resource = evolve(FORTUNE, storage=storage)
        config: Any = SimpleNamespace(reactor=server.clock, options={"min-request-timeout": 1800.0}, traced=False)
        custom = _Resources(
            {resource.name: resource},
            server.installer.mux,
            server.installer.served_resources,
            server.registry,
            definitions(),
            WatchFlusher(server.clock),
            config,
        )
        custom.install(resource.definition(definitions()), terminating=False)
        return server.client()

    def entry(self, client: Any) -> dict[str, Any]:
        """Return the entry of the resource in discovery."""
        code, found = client.ask("GET", GROUP)
        self.assertEqual((code, len(found["resources"])), (200, 1))
        entry: dict[str, Any] = found["resources"][0]
        return entry

    def test_bare(self) -> None:
        """A storage object with two verbs and a scope has no names and default columns, and refuses other verbs."""
        client = self.serve(Bare())
        self.assertEqual(
            self.entry(client),
            {"name": "fortunes", "singularName": "", "namespaced": True, "kind": "Fortune", "verbs": ["get", "list"]},
        )
        path = f"{GROUP}/namespaces/default/fortunes"
        self.assertEqual(client.ask("GET", f"{path}/a")[1]["spec"], {"text": "hello"})
        self.assertEqual(client.ask("GET", f"{path}/b")[0], 404)
        self.assertEqual([one["metadata"]["resourceVersion"] for one in client.ask("GET", path)[1]["items"]], ["7"])
        table = client.ask("GET", path, accept=TABLE)[1]
        self.assertEqual([column["name"] for column in table["columnDefinitions"]], ["Name", "Created At"])
        self.assertEqual(table["rows"][0]["cells"], ["a", "2026-01-01T00:00:00Z"])
        for method, where in (("POST", path), ("DELETE", f"{path}/a"), ("PUT", f"{path}/a"), ("DELETE", path)):
            self.assertEqual(client.ask(method, where, fortune("a"))[0], 405, method)
        self.assertEqual(client.answer("GET", f"{GROUP}/fortunes/a").code, 404)

    def test_full(self) -> None:
        """What a storage object states is in discovery, in Tables and in its routes."""
        storage = Full()
        client = self.serve(storage)
        self.assertEqual(
            self.entry(client),
            {
                "name": "fortunes",
                "singularName": "proverb",
                "namespaced": False,
                "kind": "Fortune",
                "verbs": ["create", "delete", "get", "list"],
                "shortNames": ["pr", "fo"],
                "categories": ["all"],
                "storageVersionHash": storage_version_hash("fun.example.com", "v1alpha1", "Fortune"),
            },
        )
        path = f"{GROUP}/fortunes"
        for name, text in (("a", "z"), ("b", "y")):
            self.assertEqual(client.ask("POST", path, fortune(name, text))[0], 201)
        table = client.ask("GET", path, accept=TABLE)[1]
        self.assertEqual([column["name"] for column in table["columnDefinitions"]], ["Text"])
        self.assertEqual([row["cells"] for row in table["rows"]], [["y"], ["z"]])
        self.assertEqual(client.ask("DELETE", f"{path}/b")[0], 200)
        self.assertEqual(list(storage.objects), ["a"])
        self.assertEqual(client.answer("GET", f"{GROUP}/namespaces/default/fortunes").code, 404)

    def test_reset_fields(self) -> None:
        """Clients do not own the fields that a storage object resets, and own all fields of one that states none."""
        path, obj = f"{GROUP}/fortunes", fortune("a", "x", labels={"a": "b"})
        owned = {}
        for storage in (Full(), NoResetFields()):
            created = self.serve(storage).ask("POST", path, obj)[1]
            (entry,) = created["metadata"]["managedFields"]
            owned[type(storage)] = entry["fieldsV1"]
        self.assertNotIn("f:spec", owned[Full])
        self.assertIn("f:metadata", owned[Full])
        self.assertEqual(owned[NoResetFields]["f:spec"], {".": {}, "f:text": {}})

    def test_options(self) -> None:
        """The query of a GET is decoded by the storage object, which states the media types that clients may accept."""
        client = self.serve(Full())
        client.ask("POST", f"{GROUP}/fortunes", fortune("a", "quiet"))
        path = f"{GROUP}/fortunes/a"
        self.assertEqual(client.ask("GET", path)[1]["spec"], {"text": "quiet"})
        self.assertEqual(client.ask("GET", f"{path}?loud=true")[1]["spec"], {"text": "LOUD"})
        code, refused = client.ask("GET", f"{path}?loud=1")
        self.assertEqual((code, refused["message"]), (400, "loud must be true"))
        self.assertEqual(client.answer("GET", f"{GROUP}/fortunes/none").code, 204)
        self.assertEqual(client.answer("GET", path, accept="image/png").code, 406)

    def test_openapi(self) -> None:
        """OpenAPI has the options as parameters, and the stated media types and kinds of responses."""
        self.serve(Full())
        paths = paths_of(self.server.installer.served_resources, GroupVersion("fun.example.com", "v1"))
        reading, listing = paths[f"{GROUP}/fortunes/{{name}}"]["get"], paths[f"{GROUP}/fortunes"]["get"]
        self.assertIn("tailLines", [one.name for one in reading.parameters])
        self.assertEqual((reading.produces[0], reading.answer), ("text/plain", "string"))
        self.assertNotIn("text/plain", listing.produces)
        self.assertEqual(listing.answer, "io.k8s.api.core.v1.Pod")
        self.assertEqual(set(paths[f"{GROUP}/fortunes/{{name}}"]), {"get", "delete"})

    def test_interfaces(self) -> None:
        """The storage objects of these tests provide what they declare."""
        for storage in (Bare(), Full(), NoResetFields()):
            for interface in type(storage).__implemented__:  # type: ignore[attr-defined]
                verifyObject(interface, storage)

    def test_invalid(self) -> None:
        """A storage object must state its scope, and excludes computed objects."""
        with self.assertRaises(BadResource) as caught:
            evolve(FORTUNE, storage=object()).definition(definitions())
        self.assertEqual(str(caught.exception), "the storage of fortunes.fun.example.com must provide IScoper")
        with self.assertRaises(BadResource) as caught:
            evolve(FORTUNE, storage=Bare(), compute=lambda namespace, user: []).definition(definitions())
        self.assertEqual(str(caught.exception), "the resource fortunes.fun.example.com has both compute and storage")
