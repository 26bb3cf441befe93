"""Tests of L{kubetwist.resources.capabilities}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.resource import GroupVersionKind
from kubetwist.api.tables import TableDefinition
from kubetwist.interfaces import (
    ICategoriesProvider,
    IGetter,
    ILister,
    IScoper,
    IShortNamesProvider,
    ISingularNameProvider,
    IStorageVersionProvider,
    ITableConvertor,
)
from kubetwist.registry.generic.resourceinfo import storage_version_hash
from kubetwist.resources.capabilities import DiscoveredNames, discovered_names, has_tables, is_namespaced, table_of
from tests.resources.server import Server

KIND = GroupVersionKind("fun.example.com", "v1", "Fortune")
TABLE = TableDefinition([{"name": "Text"}], lambda obj, budget: (obj["text"],))


class Bare:
    """A storage object that states nothing."""

    short_names = ("not", "declared")


@implementer(IGetter, ILister)
class Listed:
    """A storage object that can be listed."""


@implementer(
    IScoper, ISingularNameProvider, IShortNamesProvider, ICategoriesProvider, IStorageVersionProvider, ITableConvertor
)
class Everything:
    """A storage object that states everything."""

    namespace_scoped = True
    singular_name = "fortune"
    short_names = ("fo",)
    categories = ("all", "fun")
    storage_version = KIND

    def table(self, kind: GroupVersionKind, describe: Any) -> TableDefinition:
        """See L{ITableConvertor.table}."""
        assert kind == KIND
        return TABLE


def describe(type_name: str, field: str) -> str:
    """Return the description of a field."""
    return f"{type_name}.{field}"


class CapabilitiesTests(SynchronousTestCase):
    """Questions to storage objects."""

    def test_names(self) -> None:
        """Names are read from declared interfaces only; a storage object without them has none."""
        self.assertEqual(discovered_names(Bare()), DiscoveredNames())
        hashed = storage_version_hash(*KIND)
        self.assertEqual(discovered_names(Everything()), DiscoveredNames("fortune", ("fo",), ("all", "fun"), hashed))

    def test_scope(self) -> None:
        """The scope must be stated."""
        self.assertTrue(is_namespaced(Everything(), "fortunes"))
        error = self.assertRaises(TypeError, is_namespaced, Bare(), "fortunes")
        self.assertEqual(str(error), "the storage of fortunes must provide IScoper")

    def test_tables(self) -> None:
        """A storage object with a table converter has its columns; one that only lists has default columns."""
        self.assertFalse(has_tables(Bare()))
        self.assertTrue(has_tables(Everything()))
        self.assertIs(table_of(Everything(), KIND, describe), TABLE)
        self.assertTrue(has_tables(Listed()))
        table = table_of(Listed(), KIND, describe)
        self.assertEqual([column["name"] for column in table.columns], ["Name", "Created At"])
        self.assertEqual(table.columns[1]["description"], "apimachinery.pkg.apis.meta.v1.ObjectMeta.creationTimestamp")

    def test_built_in(self) -> None:
        """Discovery has what the stores of built-in resources state; subresources and reviews have no such names."""
        server = Server("deployments", "pods", "selfsubjectreviews", "componentstatuses")
        entries = {
            (one.resource, one.subresource): one
            for version in server.installer.served_resources.group_versions()
            for one in server.installer.served_resources.resources(version)
        }
        deployments = entries["deployments", ""]
        self.assertEqual(
            (deployments.singular, deployments.short_names, deployments.categories, deployments.namespaced),
            ("deployment", ("deploy",), ("all",), True),
        )
        self.assertEqual(deployments.storage_version_hash, storage_version_hash("apps", "v1", "Deployment"))
        for subresource in ("status", "scale"):
            part = entries["deployments", subresource]
            self.assertEqual((part.singular, part.short_names, part.storage_version_hash), ("", (), ""))
            self.assertTrue(part.namespaced)
        self.assertEqual(entries["componentstatuses", ""].short_names, ("cs",))
        for resource in ("componentstatuses", "selfsubjectreviews"):
            self.assertEqual(entries[resource, ""].storage_version_hash, "")
            self.assertFalse(entries[resource, ""].namespaced)
