"""
The operations of the API, derived from the served resources: paths, names, parameters, bodies and responses.

Both versions of OpenAPI are built from these, by L{.v2} and L{.v3}.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from ...api.resource import GroupVersion, GroupVersionKind
from ...http.negotiation import (
    APPLY_CBOR_PATCH,
    JSON,
    MEDIA_TYPES,
    MEDIA_TYPES_WITH_CBOR,
    PATCH_TYPES,
    STREAM_TYPES,
    STREAM_TYPES_WITH_CBOR,
)
from ..servedresources import APIResource
from . import parameters
from .parameters import Parameter

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS: Final = f"{META}Status"
DELETE_OPTIONS: Final = f"{META}DeleteOptions"
WATCH_EVENT: Final = f"{META}WatchEvent"
PATCH: Final = f"{META}Patch"
VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"
#: A type without a definition.
STRING: Final = "string"

ANY: Final = ("*/*",)


@frozen
class Operation:
    """
    One method on one path.

    @ivar action: The value of C{x-kubernetes-action}; C{""} for documents.
    @ivar kind: The value of C{x-kubernetes-group-version-kind}.
    @ivar body: The definition of the request's body; C{""} if it has none.
    @ivar answers: The status codes and their meanings, all with a body of the type C{answer}.
    @ivar answer: A definition, L{STRING}, or C{""} without a definition.
    """

    method: str
    name: str
    tag: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    action: str = ""
    kind: GroupVersionKind | None = None
    body: str = ""
    body_required: bool = True
    consumes: tuple[str, ...] = ANY
    produces: tuple[str, ...] = MEDIA_TYPES
    answers: tuple[tuple[int, str], ...] = ((200, "OK"),)
    answer: str = ""


#: The documents about service account tokens: path, tag, operation, media type and description.
_ISSUER: Final = (
    (
        "/.well-known/openid-configuration",
        "WellKnown",
        "getServiceAccountIssuerOpenIDConfiguration",
        JSON,
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    ),
    (
        "/openid/v1/jwks",
        "openid",
        "getServiceAccountIssuerOpenIDKeyset",
        "application/jwk-set+json",
        "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
    ),
)

#: The verbs of operations whose action has another name.
_VERBS: Final = {"post": "create", "put": "update"}
#: Resources whose DELETE returns the object, but is documented to return a Status.
_DOCUMENTED_AS_STATUS: Final = frozenset(("customresourcedefinitions", "namespaces"))


@frozen
class Path:
    """A path and its operations."""

    path: str
    operations: Sequence[Operation]

    def common(self) -> list[Parameter]:
        """Return the parameters that all operations share, sorted by name; they are documented once, with the path."""
        first, *rest = ({one.key: one for one in operation.parameters} for operation in self.operations)
        shared = [one for key, one in first.items() if all(key in parameters for parameters in rest)]
        return sorted(shared, key=lambda one: (one.name, one.place))

    def specific(self, operation: Operation) -> list[Parameter]:
        """Return the parameters of one operation that are not L{common} to all, sorted by name."""
        shared = {one.key for one in self.common()}
        return sorted((one for one in operation.parameters if one.key not in shared), key=lambda one: one.name)


@frozen
class Release:
    """
    The parameters of a release, and the media types of its resources.

    @ivar minor: The minor version.
    @ivar cbor: Whether the server enables CBOR.
    """

    minor: int
    cbor: bool = False

    @property
    def media_types(self) -> tuple[str, ...]:
        """Return the media types of objects."""
        return MEDIA_TYPES_WITH_CBOR if self.cbor else MEDIA_TYPES

    @property
    def list_types(self) -> tuple[str, ...]:
        """Return the media types of lists and watches."""
        return self.media_types + (STREAM_TYPES_WITH_CBOR if self.cbor else STREAM_TYPES)

    @property
    def patch_types(self) -> tuple[str, ...]:
        """Return the media types of patches."""
        return (*PATCH_TYPES, APPLY_CBOR_PATCH) if self.cbor else PATCH_TYPES

    def listing(self) -> tuple[Parameter, ...]:
        """Return the parameters of lists and watches."""
        return parameters.listing(self.minor)

    def deletion(self) -> tuple[Parameter, ...]:
        """Return the parameters of deletes."""
        return parameters.deletion(self.minor)


class Definitions:
    """The definitions of kinds."""

    def __init__(
        self, definitions: Iterable[tuple[str, Sequence[dict[str, str]]]], fallback: Definitions | None = None
    ) -> None:
        """
        @param definitions: Names, and the values of their C{x-kubernetes-group-version-kind}.
        @param fallback: Provides the definitions of all further kinds.
        """
        self._fallback = fallback
        self._names: dict[GroupVersionKind, str] = {}
        for name, kinds in definitions:
            for kind in kinds:
                self._names[GroupVersionKind(kind["group"], kind["version"], kind["kind"])] = name

    def name(self, kind: GroupVersionKind) -> str:
        """Return the definition of C{kind}; L{STRING} for kinds without a definition."""
        name = self._names.get(kind)
        if name is None:
            return STRING if self._fallback is None else self._fallback.name(kind)
        return name


def types_of(paths: Iterable[Path]) -> set[str]:
    """Return the definitions of the bodies and responses of the operations of C{paths}."""
    return {one for path in paths for operation in path.operations for one in (operation.body, operation.answer)}


def document_paths(
    group_versions: Sequence[GroupVersion], non_api_paths: Collection[str] = ()
) -> Iterator[tuple[str, Path]]:
    """
    Return all paths that are not resources, with the name of their v3 document.

    @param non_api_paths: Paths outside of C{/api} and C{/apis}; only the documents of the token issuer are described.
    """
    for path, tag, name, media_type, description in _ISSUER:
        if path in non_api_paths:
            operation = Operation("get", name, tag, description, consumes=(), produces=(media_type,), answer=STRING)
            yield path[1:], Path(f"{path}/", [operation])
    yield (
        "version",
        _document(
            "/version/", "version", "get the version information for this server", "CodeVersion", VERSION_INFO, (JSON,)
        ),
    )
    if any(not one.group for one in group_versions):
        yield "api", _document("/api/", "core", "get available API versions", "CoreAPIVersions", f"{META}APIVersions")
    yield "apis", _document("/apis/", "apis", "get available API versions", "APIVersions", f"{META}APIGroupList")
    for group in dict.fromkeys(one.group for one in group_versions if one.group):
        prefix, tag = _words(GroupVersion(group, ""))
        yield (
            f"apis/{group}",
            _document(f"/apis/{group}/", tag, "get information of a group", f"{prefix}APIGroup", f"{META}APIGroup"),
        )


def _document(
    path: str, tag: str, description: str, name: str, answer: str, produces: tuple[str, ...] = MEDIA_TYPES
) -> Path:
    operation = Operation("get", f"get{name}", tag, description, consumes=produces, produces=produces, answer=answer)
    return Path(path, [operation])


def root_path(group_version: GroupVersion) -> str:
    """Return the path of a group-version: C{"api/v1"}, C{"apis/apps/v1"}."""
    return f"apis/{group_version}" if group_version.group else f"api/{group_version.version}"


def resource_paths(
    group_version: GroupVersion, resources: Sequence[APIResource], definitions: Definitions, release: Release
) -> list[Path]:
    """
    Return the paths of a group-version.

    @param group_version: The group-version.
    @param resources: Its resources and subresources.
    @param definitions: The names of the definitions of kinds.
    @param release: The parameters of the release.
    """
    root = f"/{root_path(group_version)}/"
    prefix, tag = _words(group_version)
    found: dict[str, list[Operation]] = {}
    listing = _document(
        root, tag, "get available resources", f"{prefix}APIResources", f"{META}APIResourceList", release.media_types
    )
    found[listing.path] = list(listing.operations)
    parents = {resource.resource: resource.kind.kind for resource in resources if not resource.subresource}
    for resource in resources:
        noun = parents.get(resource.resource, resource.kind.kind)
        writer = _Writer(resource, noun, prefix, tag, definitions, release)
        for path, operation in writer.operations():
            found.setdefault(root + path, []).append(operation)
    return [Path(path, operations) for path, operations in sorted(found.items())]


class _Writer:
    """The operations of one resource or subresource."""

    def __init__(
        self,
        resource: APIResource,
        noun: str,
        prefix: str,
        tag: str,
        definitions: Definitions,
        release: Release,
    ) -> None:
        self.resource = resource
        self.noun = noun
        self.prefix = prefix
        self.tag = tag
        self.release = release
        self._definitions = definitions
        self.type = definitions.name(resource.kind)
        self.list_type = definitions.name(
            resource.kind._replace(kind=resource.list_kind or f"{resource.kind.kind}List")
        )
        sub = resource.subresource
        self.suffix = sub[:1].upper() + sub[1:]
        within = "namespaces/{namespace}/" if resource.namespaced else ""
        self.collection = f"{within}{resource.resource}"
        self.item = f"{self.collection}/{{name}}{'/' + sub if sub else ''}"
        self.scope = (parameters.NAMESPACE,) if resource.namespaced else ()
        self.named = (*self.scope, parameters.name_of(resource.kind.kind))

    def operations(self) -> Iterator[tuple[str, Operation]]:
        """Yield all operations with their paths."""
        resource = self.resource
        sub = resource.subresource
        of_noun = f"{sub} of the specified {self.noun}" if sub else f"the specified {self.noun}"
        if resource.connect_methods:
            yield from self._connect()
            return
        verbs = set(resource.verbs)
        if not sub:
            yield from self._collection(verbs)
        if "create" in verbs:
            noun = f"{sub} of{_article(self.noun)}{self.noun}" if sub else f"{self.noun}"
            yield (
                self.item if sub else self.collection,
                self._operation(
                    "post",
                    "create",
                    "post",
                    f"create {noun}" if sub else f"create{_article(noun)}{noun}",
                    (self.named if sub else self.scope) + parameters.CREATE,
                    body=self.type,
                    answers=((200, "OK"), (201, "Created"), (202, "Accepted")),
                ),
            )
        if "get" in verbs:
            yield self.item, self._get(of_noun)
        if "update" in verbs:
            yield (
                self.item,
                self._operation(
                    "put",
                    "replace",
                    "put",
                    f"replace {of_noun}",
                    self.named + parameters.UPDATE,
                    body=self.type,
                    answers=((200, "OK"), (201, "Created")),
                ),
            )
        if "patch" in verbs:
            yield (
                self.item,
                self._operation(
                    "patch",
                    "patch",
                    "patch",
                    f"partially update {of_noun}",
                    self.named + parameters.PATCH,
                    body=PATCH,
                    consumes=self.release.patch_types,
                    answers=((200, "OK"), (201, "Created")),
                ),
            )
        if "delete" in verbs:
            yield (
                self.item,
                self._operation(
                    "delete",
                    "delete",
                    "delete",
                    f"delete{_article(self.noun)}{self.noun}",
                    self.named + self.release.deletion(),
                    body=DELETE_OPTIONS,
                    body_required=False,
                    answer=self.type if self._returns_object() else STATUS,
                    answers=((200, "OK"), (202, "Accepted")),
                ),
            )

    def _collection(self, verbs: set[str]) -> Iterator[tuple[str, Operation]]:
        listing = self.release.listing()
        if "list" in verbs:
            phrase = "list or watch" if "watch" in verbs else "list"
            yield self.collection, self._list(phrase, self.scope, "")
            if self.resource.namespaced:
                yield self.resource.resource, self._list(phrase, (), "ForAllNamespaces")
        if "deletecollection" in verbs:
            selection = tuple(one for one in listing if one.name not in ("watch", "allowWatchBookmarks"))
            deletion = tuple(one for one in self.release.deletion() if one not in selection)
            yield (
                self.collection,
                self._operation(
                    "delete",
                    "deleteCollection",
                    "deletecollection",
                    f"delete collection of {self.noun}",
                    self.scope + selection + deletion,
                    body=DELETE_OPTIONS,
                    body_required=False,
                    answer=STATUS,
                ),
            )
        if "watch" in verbs:
            yield f"watch/{self.item}", self._watch("watch", "changes to an object of kind", self.named, "")
            if "list" in verbs:
                changes = "individual changes to a list of"
                yield f"watch/{self.collection}", self._watch("watchlist", changes, self.scope, "List")
                if self.resource.namespaced:
                    path = f"watch/{self.resource.resource}"
                    yield path, self._watch("watchlist", changes, (), "ListForAllNamespaces")

    def _list(self, phrase: str, scope: tuple[Parameter, ...], suffix: str) -> Operation:
        return self._operation(
            "get",
            "list",
            "list",
            f"{phrase} objects of kind {self.noun}",
            scope + self.release.listing(),
            answer=self.list_type,
            produces=self.release.list_types,
            suffix=suffix,
        )

    def _watch(self, action: str, changes: str, scope: tuple[Parameter, ...], suffix: str) -> Operation:
        single = ", filtered to a single item with the 'fieldSelector' parameter" if action == "watch" else ""
        instead = f"use the 'watch' parameter with a list operation instead{single}."
        return self._operation(
            "get",
            "watch",
            action,
            f"watch {changes} {self.noun}. deprecated: {instead}",
            scope + self.release.listing(),
            answer=WATCH_EVENT,
            produces=self.release.list_types,
            suffix=suffix,
        )

    def _get(self, of_noun: str) -> Operation:
        options = parameters.OPTIONS.get(self.resource.options, ())
        return self._operation("get", "read", "get", f"read {of_noun}", self.named + options)

    def _connect(self) -> Iterator[tuple[str, Operation]]:
        resource = self.resource
        options = parameters.OPTIONS.get(resource.kind.kind, ())
        routes = [(self.item, self.named + options, "")]
        if resource.connect_subpath:
            routes.append((f"{self.item}/{{path}}", (*self.named, *options, parameters.PATH), "WithPath"))
        for path, parameters_, suffix in routes:
            for method in resource.connect_methods:
                yield (
                    path,
                    Operation(
                        method.lower(),
                        f"connect{self.prefix}{method.capitalize()}{self._scoped()}{self.noun}{self.suffix}{suffix}",
                        self.tag,
                        f"connect {method} requests to {resource.subresource} of {self.noun}",
                        parameters_,
                        "connect",
                        resource.kind,
                        produces=ANY,
                        answer=STRING,
                    ),
                )

    def _returns_object(self) -> bool:
        """Return whether DELETE is documented to return the object."""
        return self.resource.delete_returns_object() and self.resource.resource not in _DOCUMENTED_AS_STATUS

    def _scoped(self) -> str:
        return "Namespaced" if self.resource.namespaced else ""

    def _operation(
        self,
        method: str,
        verb: str,
        action: str,
        description: str,
        parameters_: tuple[Parameter, ...],
        body: str = "",
        body_required: bool = True,
        consumes: tuple[str, ...] = ANY,
        produces: tuple[str, ...] = (),
        answer: str | None = None,
        answers: tuple[tuple[int, str], ...] = ((200, "OK"),),
        suffix: str = "",
    ) -> Operation:
        scoped = "" if suffix.endswith("ForAllNamespaces") else self._scoped()
        produces = produces or self.release.media_types
        produced = self.resource.produced.get(_VERBS.get(action, action))
        if produced is not None:
            produces = (*produced.media_types, *produces)
            answer = STRING if produced.kind is None else self._definitions.name(produced.kind)
        verb, collection = ("delete", "Collection") if verb == "deleteCollection" else (verb, "")
        return Operation(
            method=method,
            name=f"{verb}{self.prefix}{collection}{scoped}{self.noun}{self.suffix}{suffix}",
            tag=self.tag,
            description=description,
            parameters=parameters_ + parameters.PRETTY,
            action=action,
            kind=self.resource.kind,
            body=body,
            body_required=body_required,
            consumes=consumes,
            produces=produces,
            answers=answers,
            answer=self.type if answer is None else answer,
        )


_NO_WORD: Final = re.compile(r"[^0-9A-Za-z]+")


def _words(group_version: GroupVersion) -> tuple[str, str]:
    """
    Return the forms of a group-version in operation ids and tags: C{("RbacAuthorizationV1", "rbacAuthorization_v1")}.
    """
    group = (group_version.group or "core").removesuffix(".k8s.io")
    first, *rest = _NO_WORD.split(group)
    tag = first + "".join(word[:1].upper() + word[1:] for word in rest)
    prefix = tag[:1].upper() + tag[1:]
    version = group_version.version
    if not version:
        return prefix, tag
    return f"{prefix}{version[:1].upper()}{version[1:]}", f"{tag}_{version}"


def _article(noun: str) -> str:
    if noun.endswith("s") and not noun.endswith("ss"):
        return " "
    return " an " if noun[0] in "AEIOUaeiou" else " a "
