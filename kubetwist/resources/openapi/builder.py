"""Builds OpenAPI documents of the served resources, in a thread, as that takes long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from attrs import evolve

from ...api.jsonpieces import decoded
from ...api.resource import GroupVersion, JSONObject
from ...schema.openapi import V2_REFERENCE, V3_REFERENCE
from ..servedresources import APIResource
from . import fragments
from .compressed import V2_PROTOBUF, V3_PROTOBUF, CompressedDocument
from .fragments import V2, FragmentBuilder, SpecFragment, joined
from .operations import Definitions, Path, Release, document_paths, resource_paths, root_path, types_of
from .protobufv2 import encode_v2
from .protobufv3 import pieces_v3
from .schemas import IDefinitions, limit_to_kube_groups, reachable
from .specmerge import RemoteSpec, SpecMerge, pieces
from .v2 import path_item, v2_frame
from .v3 import v3_document

#: The served resources at one moment.
Snapshot = Sequence[tuple[GroupVersion, Sequence[APIResource]]]

#: The specs of aggregated servers, in the order of the merge.
Remote = Sequence[tuple[GroupVersion, RemoteSpec]]


class Builder:
    """Builds documents of the served resources; thread-safe, as it has no mutable state."""

    def __init__(
        self, definitions: IDefinitions, release: str, non_api_paths: Collection[str] = (), cbor: bool = False
    ) -> None:
        """
        @param definitions: The types of the release.
        @param release: Major and minor version: C{"1.36"}.
        @param non_api_paths: Paths outside of C{/api} and C{/apis}, see L{document_paths}.
        @param cbor: Whether CBOR is a media type of resources.
        """
        self._definitions = definitions
        self._non_api_paths = non_api_paths
        self._release = release
        self._rules = Release(int(release.partition(".")[2]), cbor)
        self._parts = FragmentBuilder(self._rules)

    def v2(self, snapshot: Snapshot, remote: Remote = ()) -> CompressedDocument:
        """
        Return the v2 document.

        @param remote: The specs of aggregated servers.
        """
        frame, parts, merge = self._v2(snapshot, V2, remote)
        merged = [] if merge is None else [(pieces(merge.paths), pieces(merge.definitions))]
        paths = chain((part.inside()[0] for part in parts), (one for one, _ in merged))
        definitions = chain((part.inside()[1] for part in parts), (one for _, one in merged))
        return CompressedDocument.pieces(joined(frame, paths, definitions, ("definitions",)), b"application/json")

    def v2_protobuf(self, snapshot: Snapshot, remote: Remote = ()) -> CompressedDocument:
        """
        Return the v2 document in protobuf.

        It is built from its parts instead of its JSON: parsing such a large document at once would block all other
        threads.
        """
        frame, parts, merge = self._v2(snapshot, fragments.V2_PROTOBUF, remote)
        encoded = chain([encode_v2(frame)], (part.decompress() for part in parts))
        if merge is not None:
            for section, added in (("paths", merge.paths), ("definitions", merge.definitions)):
                encoded = chain(encoded, _encoded(section, added))
        return CompressedDocument.pieces(encoded, b"application/" + V2_PROTOBUF.encode())

    def _v2(
        self, snapshot: Snapshot, form: str, remote: Remote
    ) -> tuple[JSONObject, list[SpecFragment], SpecMerge | None]:
        """
        Return the document without custom resources and aggregated servers, the fragments of custom resources, and the
        merge.
        """
        schemas = self._definitions.openapi_schemas(V2_REFERENCE)
        names = _names(schemas)
        paths = [path for _, path in document_paths(_documented(snapshot), self._non_api_paths)]
        parts: list[SpecFragment] = []
        for group_version, resources in snapshot:
            if any(one.custom for one in resources):
                parts += self._parts.of(form, group_version, resources, names)
            else:
                paths += resource_paths(group_version, resources, names, self._rules)
        shared: dict[str, JSONObject] = {}
        items = {path.path: path_item(path, shared) for path in sorted(paths, key=lambda path: path.path)}
        types = types_of(paths)
        for part in parts:
            shared.update(part.shared)
            types |= part.needs
        schemas = reachable(schemas, types, None)
        merge = None
        if remote:
            served = {group_version for group_version, _ in snapshot}
            merge = SpecMerge(schemas, _custom_definition_names(snapshot), shared, items)
            for group_version, spec in remote:
                # Group-versions that this server serves, too, are documented already.
                if group_version not in served:
                    merge.add(spec)
        return v2_frame(items, schemas, shared, self._release), parts, merge

    def v3(
        self, snapshot: Snapshot, cached: dict[str, tuple[object, CompressedDocument]]
    ) -> dict[str, tuple[object, CompressedDocument]]:
        """
        Return all v3 documents by name.

        @param cached: The previous result; unchanged documents are reused.
        """
        sources: dict[str, tuple[object, GroupVersion | None]] = {
            name: (path, None) for name, path in document_paths(_documented(snapshot), self._non_api_paths)
        }
        for group_version, resources in snapshot:
            sources[root_path(group_version)] = resources, group_version
        found = {
            name: cached[name] for name, (source, _) in sources.items() if name in cached and cached[name][0] == source
        }
        if len(found) < len(sources):
            schemas = self._definitions.openapi_schemas(V3_REFERENCE)
            names = _names(schemas)
            for name, (source, version) in sources.items():
                if name in found:
                    continue
                if isinstance(source, Path):
                    paths = [source]
                else:
                    assert version is not None
                    resources = cast("Sequence[APIResource]", source)
                    if any(one.custom for one in resources):
                        found[name] = source, self._custom(version, resources, schemas, names)
                        continue
                    paths = resource_paths(version, resources, names, self._rules)
                found[name] = source, CompressedDocument.pack(v3_document(paths, schemas, self._release, version))
        return found

    def _custom(
        self,
        group_version: GroupVersion,
        resources: Sequence[APIResource],
        schemas: Mapping[str, JSONObject],
        names: Definitions,
    ) -> CompressedDocument:
        """Return the v3 document of custom resources."""
        parts = self._parts.of(fragments.V3, group_version, resources, names)
        needs = {name for part in parts for name in part.needs}
        frame: JSONObject = {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
            "paths": {},
            "components": {"schemas": limit_to_kube_groups(reachable(schemas, needs, None))},
        }
        paths, inside = (part.inside()[0] for part in parts), (part.inside()[1] for part in parts)
        return CompressedDocument.pieces(joined(frame, paths, inside, ("components", "schemas")), b"application/json")


def _documented(snapshot: Snapshot) -> list[GroupVersion]:
    """
    Return the versions whose discovery documents are described.

    Versions of custom resources are excluded: in the reference a handler answers them that is not part of its OpenAPI
    builder (apiextensions-apiserver, C{pkg/apiserver/customresource_discovery.go}).
    """
    return [group_version for group_version, resources in snapshot if not any(one.custom for one in resources)]


def _names(schemas: Mapping[str, JSONObject]) -> Definitions:
    return Definitions((name, schema.get("x-kubernetes-group-version-kind", ())) for name, schema in schemas.items())


def v3_protobuf(packed: CompressedDocument) -> CompressedDocument:
    """Return a v3 document in protobuf, with the hash of its JSON."""
    made = CompressedDocument.pieces(pieces_v3(packed.decompress()), b"application/" + V3_PROTOBUF.encode())
    return evolve(made, hash=packed.hash)


def _custom_definition_names(snapshot: Snapshot) -> set[str]:
    """Return the names of the definitions of custom resources."""
    found: set[str] = set()
    for _, resources in snapshot:
        for resource in resources:
            if resource.custom is not None and not resource.subresource:
                found.update(resource.custom.names)
    return found


def _encoded(section: str, parts: Mapping[str, bytes]) -> Iterator[bytes]:
    for name, text in parts.items():
        yield encode_v2({section: {name: decoded(text)}})
