"""Definition of the resources of an extension server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..registry.apiextensions.strategy import CustomResourceDefinitionStrategy
from ..resources.capabilities import DiscoveredNames, discovered_names, is_namespaced
from ..schema.definitions import Definitions

#: Returns the objects of a namespace (C{""} for all) for a user, or an awaitable of them.
Compute = Callable[[str, UserInfo], Any]

#: The properties of every object, which a schema may omit.
_COMMON: Final = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


class BadResource(ValueError):
    """A resource is invalid. The message states the reason."""


@frozen(kw_only=True)
class Resource:
    """
    One version of a resource.

    @ivar schema: The properties of an object besides C{apiVersion}, C{kind} and C{metadata}: structural schemas as in a
        CustomResourceDefinition, with defaults and validation rules (C{x-kubernetes-validations}).
    @ivar required: The required properties.
    @ivar columns: The table columns after the name, as C{additionalPrinterColumns}. The default is the age.
    @ivar status: Whether C{status} is a subresource.
    @ivar storage: Serves the objects instead of the store of the server. It provides C{IScoper} and the interfaces of
        the verbs that are served, and states names, columns and further properties as C{kubetwist.interfaces}
        describes; the names and the scope here are ignored then.
    @ivar compute: Computes the objects on request instead of storing them: called with a namespace (C{""} for all) and
        the user; returns objects, or an awaitable of them. Then only C{get} and C{list} are served.
    """

    group: str
    version: str
    kind: str
    plural: str
    schema: Mapping[str, Any]
    required: Sequence[str] = ()
    namespaced: bool = True
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[Mapping[str, Any]] = ()
    status: bool = False
    compute: Compute | None = field(default=None, repr=False)
    storage: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return the full name: C{"fortunes.fun.example.com"}."""
        return f"{self.plural}.{self.group}"

    def definition(self, definitions: Definitions) -> JSONObject:
        """
        Return the equivalent CustomResourceDefinition with the conditions of an established one.

        @raise BadResource: The definition is invalid.
        """
        stated, namespaced = self._stated_names()
        names = {
            "plural": self.plural,
            "singular": stated.singular or self.kind.lower(),
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "shortNames": list(stated.short_names),
            "categories": list(stated.categories),
        }
        schema: JSONObject = {"type": "object", "properties": {**_COMMON, **self.schema}}
        if self.required:
            schema["required"] = list(self.required)
        version: JSONObject = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        if self.status:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [dict(one) for one in self.columns]
        obj: JSONObject = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name, "uid": self.name},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if namespaced else "Cluster",
                "versions": [version],
            },
        }
        strategy = CustomResourceDefinitionStrategy(definitions.custom_metadata)
        strategy.default(obj)
        causes = strategy.validate(obj)
        if causes:
            problems = "; ".join(f"{one.field}: {one.message}" for one in causes)
            raise BadResource(f"the resource {self.name} makes no sense: {problems}")
        obj["status"] = {"acceptedNames": names, "storedVersions": [self.version], "conditions": []}
        return obj

    def _stated_names(self) -> tuple[DiscoveredNames, bool]:
        """Return the names, and whether there are namespaces; a storage object states both itself."""
        if self.storage is None:
            return DiscoveredNames(self.singular, tuple(self.short_names), tuple(self.categories)), self.namespaced
        if self.compute is not None:
            raise BadResource(f"the resource {self.name} has both compute and storage")
        try:
            return discovered_names(self.storage), is_namespaced(self.storage, self.name)
        except TypeError as error:
            raise BadResource(str(error)) from error


def validate_resources(resources: Iterable[Resource]) -> list[Resource]:
    """
    Return resources that one server can serve together.

    @raise BadResource: There is no resource, or a duplicate.
    """
    checked = list(resources)
    if not checked:
        raise BadResource("no resource to serve")
    names = [one.name for one in checked]
    for name in names:
        if names.count(name) > 1:
            raise BadResource(f"the resource {name} is there twice")
    return checked
