"""
Fragments of OpenAPI documents for custom resources: built per resource, and cached compressed while it is unchanged.

There may be thousands of custom resources, and a change of one rebuilds only its fragment. No document ever exists as a
whole tree of dictionaries: the garbage collection of one would block the server for half a second.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Final

import orjson
from attrs import frozen

from twisted.logger import Logger

from ...api.resource import GroupVersion, JSONObject
from ...schema.openapi import V2_REFERENCE, V3_REFERENCE
from ..servedresources import APIResource
from .custom import custom_definitions, custom_paths
from .operations import Definitions, Path, Release, resource_paths, root_path, types_of
from .protobufv2 import encode_v2
from .schemas import references
from .v2 import path_item as v2_item
from .v3 import path_item as v3_item

_log = Logger()

#: The forms of documents.
V2: Final = "v2"
V2_PROTOBUF: Final = "v2 protobuf"
V3: Final = "v3"


@frozen
class SpecFragment:
    """
    The fragment of a document for one custom resource.

    @ivar body: Compressed: for JSON its paths, a zero byte, and its schemas, each without the braces; for protobuf a
        complete document, which can be appended to another one.
    @ivar needs: Names of schemas outside of the fragment that it refers to.
    @ivar shared: The parameters that it refers to; in v2 only.
    """

    body: bytes
    needs: frozenset[str]
    shared: dict[str, JSONObject]

    def decompress(self) -> bytes:
        """Return the decompressed body."""
        return zlib.decompress(self.body)

    def inside(self) -> tuple[bytes, bytes]:
        """Return the members of C{paths} and of the schemas, for JSON."""
        paths, _, schemas = self.decompress().partition(b"\0")
        return paths, schemas


class FragmentBuilder:
    """Builds fragments; thread-safe, as building the same fragment twice is harmless."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._makers: dict[str, Callable[..., SpecFragment]] = {V2: _v2, V2_PROTOBUF: _v2_protobuf, V3: _v3}

    def of(
        self, form: str, group_version: GroupVersion, resources: Iterable[APIResource], names: Definitions
    ) -> list[SpecFragment]:
        """
        Return the fragments of all custom resources of a group-version, in their order.

        @param form: L{V2}, L{V2_PROTOBUF} or L{V3}.
        @param group_version: The group-version.
        @param resources: Its resources and subresources.
        @param names: The definitions of built-in kinds.
        """
        found = []
        for custom, group in groupby(resources, key=lambda one: one.custom):
            entries = tuple(group)
            cached = custom.parts.get(form)
            if cached is None or cached[0] != entries:
                try:
                    fragment = self._make(form, group_version, entries, names)
                except Exception:
                    # An invalid schema of one resource must not make the whole document unavailable.
                    _log.failure(
                        "{name} of {group_version} is left out of OpenAPI",
                        name=entries[0].resource,
                        group_version=group_version,
                    )
                    fragment = SpecFragment(zlib.compress(b"" if form == V2_PROTOBUF else b"\0"), frozenset(), {})
                cached = custom.parts[form] = entries, fragment
            found.append(cached[1])
        return found

    def _make(
        self, form: str, group_version: GroupVersion, entries: Sequence[APIResource], names: Definitions
    ) -> SpecFragment:
        reference = V3_REFERENCE if form == V3 else V2_REFERENCE
        schemas = custom_definitions(entries, reference)
        known = Definitions(
            ((name, schema.get("x-kubernetes-group-version-kind", ())) for name, schema in schemas.items()), names
        )
        root = f"/{root_path(group_version)}/"
        found = resource_paths(group_version, entries, known, self._release)
        paths = custom_paths((path for path in found if path.path != root), entries[0].kind)
        types = types_of(paths)
        types.update(name for schema in schemas.values() for name in references(schema))
        return self._makers[form](paths, schemas, frozenset(types - schemas.keys()))


def _v3(paths: Sequence[Path], schemas: JSONObject, needs: frozenset[str]) -> SpecFragment:
    return SpecFragment(_compress({path.path: v3_item(path) for path in paths}, schemas), needs, {})


def _v2(paths: Sequence[Path], schemas: JSONObject, needs: frozenset[str]) -> SpecFragment:
    shared: dict[str, JSONObject] = {}
    items = {path.path: v2_item(path, shared) for path in paths}
    return SpecFragment(_compress(items, schemas), needs, shared)


def _v2_protobuf(paths: Sequence[Path], schemas: JSONObject, needs: frozenset[str]) -> SpecFragment:
    shared: dict[str, JSONObject] = {}
    items = {path.path: v2_item(path, shared) for path in paths}
    return SpecFragment(zlib.compress(encode_v2({"paths": items, "definitions": schemas}), 1), needs, shared)


def _compress(paths: JSONObject, schemas: JSONObject) -> bytes:
    # Strings in JSON have no zero bytes.
    return zlib.compress(orjson.dumps(paths)[1:-1] + b"\0" + orjson.dumps(schemas)[1:-1], 1)


def joined(
    document: JSONObject, paths: Iterable[bytes], schemas: Iterable[bytes], place: tuple[str, ...]
) -> Iterator[bytes]:
    """
    Add paths and schemas to a document in JSON; yield it in pieces, as it may be large.

    @param place: The path of its schemas: C{("components", "schemas")}.
    """
    return _object(document, (), {("paths",): paths, place: schemas})


def _object(
    value: JSONObject, path: tuple[str, ...], additions: dict[tuple[str, ...], Iterable[bytes]]
) -> Iterator[bytes]:
    """Yield an object in JSON; only objects that get additional members are decoded."""
    extra = additions.get(path)
    if extra is not None:
        yield b"{"
        before = b""
        for piece in chain([orjson.dumps(value)[1:-1]], extra):
            if piece:
                yield before + piece
                before = b","
        yield b"}"
    elif any(other[: len(path)] == path for other in additions):
        before = b"{"
        for name, inner in value.items():
            yield before + orjson.dumps(name) + b":"
            before = b","
            yield from _object(inner, (*path, name), additions) if isinstance(inner, dict) else [orjson.dumps(inner)]
        yield b"}"
    else:
        yield orjson.dumps(value)
