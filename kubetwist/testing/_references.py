"""
References to resources as testers write them, and the paths of the objects that they name.

A reference is C{"pods/web-0"}, C{"deployment.apps/web"}, C{"po"}, an object with C{apiVersion}, C{kind} and
C{metadata}, or an object of a client library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final
from urllib.parse import quote

from attrs import frozen

from ..api.jsontypes import JSONObject, JSONValue

_VERSION: Final = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")
#: Classes of the library C{kubernetes}: C{V1Deployment}, C{V1beta1Role}.
_MODEL: Final = re.compile(r"V([0-9]+(?:(?:alpha|beta)[0-9]+)?)([A-Z][A-Za-z]+)")
_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
#: Accepts aggregated discovery, and the documents of servers without it.
ACCEPT_DISCOVERY: Final = f"{_AGGREGATED.format('v2')},{_AGGREGATED.format('v2beta1')},application/json"

#: Returns the decoded document at a path of the server.
Fetch = Callable[[str], JSONValue]


class UnknownResourceError(LookupError):
    """The server does not have a resource; the text names it."""


@frozen
class Reference:
    """
    The resource that a tester names, and one of its objects.

    @ivar resource: A plural or singular name, a short name, or a kind.
    @ivar group: The API group; L{None} for any.
    @ivar version: The version; C{""} for any.
    @ivar namespace: The namespace that the reference contains.
    @ivar name: The name of the object; C{""} for all objects.
    @ivar uid: The uid of the object, if it is known.
    """

    resource: str
    group: str | None = None
    version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def text(self) -> str:
        """Return the resource with its group, as C{kubectl} accepts it."""
        return ".".join(filter(None, (self.resource, self.version, self.group)))

    @classmethod
    def of(cls, value: object, name: str = "") -> Reference:
        """
        Return the reference that a value is.

        @param value: See the module.
        @param name: The name of the object, if C{value} is a resource without a name.
        @raise ValueError: The text is malformed, or contains another name.
        @raise TypeError: The value is not a reference.
        """
        if isinstance(value, str):
            return cls._parse(value, name)
        found = object_of(value)
        if found is None:
            raise TypeError(
                f"{value!r} is no reference to a resource: use text such as 'pods/web-0', or an object with"
                " apiVersion, kind and metadata"
            )
        version, kind = str(found.get("apiVersion") or ""), str(found.get("kind") or "")
        if not kind:
            raise ValueError("the object has no kind")
        group, _, number = version.rpartition("/")
        meta = found.get("metadata") or {}
        return cls(
            kind,
            group if version else None,
            number,
            str(meta.get("namespace") or ""),
            name or str(meta.get("name") or ""),
            "" if name else str(meta.get("uid") or ""),
        )

    @classmethod
    def _parse(cls, text: str, name: str) -> Reference:
        resource, slash, found = text.strip().partition("/")
        if not resource or (slash and not found) or "/" in found or any(one.isspace() for one in text.strip()):
            raise ValueError(f"{text!r} is no resource: use 'pods', 'pods/web-0' or 'deployments.apps/web'")
        if name and found:
            raise ValueError(f"{text!r} contains a name, and name={name!r} is another one")
        resource, dot, group = resource.partition(".")
        version = ""
        head, _, rest = group.partition(".")
        if _VERSION.fullmatch(head):
            version, group = head, rest
        return cls(resource, group if dot else None, version, name=found or name)


def object_of(value: object) -> Mapping[str, JSONValue] | None:
    """
    Return an object as JSON: a mapping, or the content of an object of kr8s, lightkube, pykube or C{kubernetes}.

    The objects of C{kubernetes} are only read as far as a L{Reference} needs it.

    @return: L{None} if the value is something else.
    """
    if isinstance(value, Mapping):
        return value
    for attribute in ("raw", "obj"):
        found = getattr(value, attribute, None)
        if isinstance(found, Mapping):
            return found
    to_dict = getattr(value, "to_dict", None)
    if not callable(to_dict):
        return None
    found = to_dict()
    if not isinstance(found, Mapping):
        return None
    if "api_version" not in found:
        return found
    # A model of the library kubernetes: items of lists have neither apiVersion nor kind.
    meta = found.get("metadata") or {}
    version, kind = found["api_version"], found.get("kind")
    if not kind:
        match = _MODEL.fullmatch(type(value).__name__)
        if match is None:
            return None
        kind = match[2]
    metadata = {name: meta.get(name) for name in ("namespace", "name", "uid")}
    return {"apiVersion": version or "", "kind": kind, "metadata": metadata}


@frozen
class Resource:
    """A resource of the server."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    short_names: tuple[str, ...]
    namespaced: bool
    verbs: frozenset[str]

    @property
    def text(self) -> str:
        """Return the plural with its group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Return the group and version as C{apiVersion}."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """
        Return the path of the objects.

        @param namespace: C{""} for all namespaces; ignored for cluster-scoped resources.
        @param name: The name of one object; C{""} for all.
        """
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def has_name(self, name: str) -> bool:
        """Return whether C{name} is the plural, the singular, a short name or the kind; cases are ignored."""
        lower = name.lower()
        return lower in (self.plural, self.singular, self.kind.lower()) or lower in self.short_names


class ResourceTable:
    """The resources of a server, from its discovery documents."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """
        @param resources: In the order of preference.
        """
        self.resources = tuple(resources)

    @classmethod
    def fetch(cls, fetch: Fetch) -> ResourceTable:
        """Read the discovery documents of a server."""
        return cls(_discover(fetch))

    def find(self, reference: Reference) -> Resource:
        """
        Return the resource of a reference.

        @raise UnknownResourceError: There is none.
        """
        for resource in self.resources:
            if reference.group is not None and reference.group != resource.group:
                continue
            if reference.version and reference.version != resource.version:
                continue
            if resource.has_name(reference.resource):
                return resource
        names = sorted({name for one in self.resources for name in (one.text, one.plural)})
        close = get_close_matches(reference.text.lower(), names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownResourceError(f"the server has no resource {reference.text!r}{hint}")


def _discover(fetch: Fetch) -> Iterator[Resource]:
    """Yield the resources of the core group, then of all groups, preferred versions first."""
    for root in ("/api", "/apis"):
        document = fetch(root)
        if document.get("kind") == "APIGroupDiscoveryList":
            for group in document.get("items") or ():
                yield from _aggregated(group)
        elif root == "/api":
            yield from _listed("", "v1", fetch("/api/v1"))
        else:
            for group in document.get("groups") or ():
                preferred = (group.get("preferredVersion") or {}).get("version")
                versions = [one["version"] for one in group["versions"]]
                if preferred in versions:
                    versions.remove(preferred)
                    versions.insert(0, preferred)
                for version in versions:
                    yield from _listed(group["name"], version, fetch(f"/apis/{group['name']}/{version}"))


def _aggregated(group: JSONObject) -> Iterator[Resource]:
    for version in group.get("versions") or ():
        for entry in version.get("resources") or ():
            yield Resource(
                (group.get("metadata") or {}).get("name", ""),
                version["version"],
                entry["resource"],
                entry.get("singularResource") or entry["resource"],
                (entry.get("responseKind") or {}).get("kind", ""),
                tuple(entry.get("shortNames") or ()),
                entry.get("scope") == "Namespaced",
                frozenset(entry.get("verbs") or ()),
            )


def _listed(group: str, version: str, document: JSONObject) -> Iterator[Resource]:
    for entry in document.get("resources") or ():
        if "/" in entry["name"]:
            continue
        yield Resource(
            group,
            version,
            entry["name"],
            entry.get("singularName") or entry["kind"].lower(),
            entry["kind"],
            tuple(entry.get("shortNames") or ()),
            bool(entry["namespaced"]),
            frozenset(entry.get("verbs") or ()),
        )
