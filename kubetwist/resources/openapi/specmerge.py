"""
Merges the OpenAPI v2 documents of other servers into ours.

Only the paths of a server's group-versions are merged, with the definitions and parameters that they refer to. A
definition whose name is taken by a different one is renamed.

@see: kubernetes/kube-openapi, C{pkg/aggregator/aggregator.go}
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from typing import Final

import orjson
from attrs import frozen

from ...api.jsonpieces import check_object, decoded, members
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersion, JSONObject
from ...schema.openapi import V2_REFERENCE
from ..remotedocuments import BadDocument
from .protobufv2 import encode_v2

#: Maximum bytes of a document.
MAX_SIZE: Final = 8 * 1024 * 1024
#: Maximum paths, definitions and parameters of a document.
MAX_MEMBERS: Final = 20_000
#: Maximum rounds of comparing definitions, each with the differences of the round before.
MAX_ROUNDS: Final = 30
PARAMETERS: Final = "#/parameters/"
_KINDS: Final = "x-kubernetes-group-version-kind"
_REFERENCE: Final = re.compile(rb'"\$ref"\s*:\s*"#/definitions/([^"\\]*)"')


@frozen
class RemoteSpec:
    """
    The spec of one group-version of a server: its paths, definitions and parameters by name, as JSON.

    @ivar paths: The paths below the path of the group-version.
    """

    paths: Mapping[str, bytes]
    definitions: Mapping[str, bytes]
    parameters: Mapping[str, bytes]


def read_v2(body: bytes, group_versions: Collection[GroupVersion]) -> dict[GroupVersion, RemoteSpec]:
    """
    Return the spec of each of C{group_versions} in a document.

    @raise BadDocument: The document is not OpenAPI v2, or exceeds a limit.
    @raise BadJSON: The document is not JSON.
    """
    if len(body) > MAX_SIZE:
        raise BadDocument(f"longer than {MAX_SIZE} bytes")
    check_object(body)
    sections = {name: start for name, start, _ in members(body)}
    parts = [
        {name: body[start:end] for name, start, end in members(body, sections[section])} if section in sections else {}
        for section in ("paths", "definitions", "parameters")
    ]
    paths, definitions, parameters = parts
    if sum(map(len, parts)) > MAX_MEMBERS:
        raise BadDocument(f"more than {MAX_MEMBERS} paths, definitions and parameters")
    used = {found[1].decode() for found in _REFERENCE.finditer(body)}
    unused = [name for name in definitions if name not in used]
    read = _Reader(definitions, parameters)
    return {one: read.spec(paths, f"/apis/{one.group}/{one.version}/", unused) for one in group_versions}


class _Reader:
    """Decodes the needed parts once, and encodes them again, so that they are valid and normalized."""

    def __init__(self, definitions: Mapping[str, bytes], parameters: Mapping[str, bytes]) -> None:
        self._sources = {V2_REFERENCE: definitions, PARAMETERS: parameters}
        self._known: dict[tuple[str, str], tuple[bytes, set[tuple[str, str]]]] = {}

    def spec(self, paths: Mapping[str, bytes], prefix: str, unused: Iterable[str]) -> RemoteSpec:
        """Return the parts for the paths that begin with C{prefix}, and the C{unused} definitions."""
        selected_paths: dict[str, bytes] = {}
        pending = {(V2_REFERENCE, name) for name in unused}
        for name, text in paths.items():
            if name.startswith(prefix):
                selected_paths[name], references = _check_member("paths", name, text)
                pending |= references
        found: dict[str, dict[str, bytes]] = {V2_REFERENCE: {}, PARAMETERS: {}}
        while selected_paths and pending:
            place, name = pending.pop()
            if name in found[place] or name not in self._sources[place]:
                continue
            found[place][name], references = self._part(place, name)
            pending |= references
        return RemoteSpec(selected_paths, found[V2_REFERENCE], found[PARAMETERS])

    def _part(self, place: str, name: str) -> tuple[bytes, set[tuple[str, str]]]:
        known = self._known.get((place, name))
        if known is None:
            section = "definitions" if place == V2_REFERENCE else "parameters"
            known = self._known[place, name] = _check_member(section, name, self._sources[place][name])
        return known


def _check_member(section: str, name: str, text: bytes) -> tuple[bytes, set[tuple[str, str]]]:
    """Check a part; return it with its references."""
    content = decoded(text)
    try:
        # The protobuf encoder checks the type of every field.
        encode_v2({section: {name: content}})
    except (TypeError, AttributeError, KeyError, ValueError, struct.error):
        raise BadDocument(f"invalid member of {section}: {name[:200]}") from None
    references: set[tuple[str, str]] = set()
    for target in _references(content):
        for place in (V2_REFERENCE, PARAMETERS):
            if target.startswith(place):
                references.add((place, target.removeprefix(place)))
    return orjson.dumps(content), references


def _references(content: JSONValue) -> Iterator[str]:
    pending = [content]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            target = one.get("$ref")
            if isinstance(target, str):
                yield target
            pending += one.values()
        elif isinstance(one, list):
            pending += one


class SpecMerge:
    """
    Merges the documents of aggregated servers into the local document, one after the other.

    @ivar paths: The added paths.
    @ivar definitions: The added definitions.
    """

    def __init__(
        self,
        schemas: MutableMapping[str, JSONObject],
        reserved_names: Collection[str],
        parameters: MutableMapping[str, JSONObject],
        paths: Collection[str],
    ) -> None:
        """
        @param schemas: The local definitions; a definition shared with kinds of aggregated servers is replaced.
        @param reserved_names: Names of further local definitions, without their contents.
        @param parameters: The local parameters; parameters of aggregated servers are added.
        @param paths: The local paths, which aggregated servers do not change.
        """
        self.paths: dict[str, bytes] = {}
        self.definitions: dict[str, bytes] = {}
        self._schemas = schemas
        self._reserved_names = reserved_names
        self._parameters = parameters
        self._local_paths = paths
        #: The added definitions before renaming, and the renamed references of each.
        self._originals: dict[str, JSONObject] = {}
        self._targets: dict[str, dict[str, str]] = {}

    def add(self, spec: RemoteSpec) -> None:
        """Merge the spec of one group-version."""
        paths = [name for name in spec.paths if name not in self._local_paths and name not in self.paths]
        if not paths:
            return
        definitions = {name: decoded(text) for name, text in spec.definitions.items()}
        parameters = {name: decoded(text) for name, text in spec.parameters.items()}
        names = self._names(definitions)
        parameter_names = _renamed(parameters, self._parameters.get, _equal, ())
        renames = {V2_REFERENCE + old: V2_REFERENCE + new for old, new in names.items() if old != new}
        renames |= {PARAMETERS + old: PARAMETERS + new for old, new in parameter_names.items() if old != new}
        for name, content in definitions.items():
            self._add_definition(names[name], content, renames, names)
        for name, content in parameters.items():
            self._parameters.setdefault(parameter_names[name], _with_names(content, renames))
        for name in paths:
            text = spec.paths[name]
            self.paths[name] = orjson.dumps(_with_names(decoded(text), renames)) if renames else text

    def _definition(self, name: str) -> JSONObject | None:
        return self._schemas.get(name) or self._originals.get(name)

    def _names(self, definitions: Mapping[str, JSONObject]) -> dict[str, str]:
        """
        Return the names under which definitions are merged.

        Two equal definitions still differ if their references do. Unlike the reference, which compares only the text,
        no type gets the description of another server's type with the same name.
        """
        referred = {name: _definition_names(content) for name, content in definitions.items()}
        different: set[tuple[str, str]] = set()
        rounds = 0
        while True:
            rounds += 1
            names = _renamed(definitions, self._definition, _same_definition, self._reserved_names, different)
            found = set()
            for name, new in names.items():
                if self._definition(new) is not None:
                    targets = self._targets.get(new, {})
                    if any(targets.get(one, one) != names.get(one, one) for one in referred[name]):
                        found.add((name, new))
            if not found:
                return names
            if rounds > MAX_ROUNDS:
                # Only an unrealistically long chain of references remains: no definition of it is shared.
                found.update((name, new) for name, new in names.items() if self._definition(new) is not None)
            different |= found

    def _add_definition(
        self, name: str, content: JSONObject, renames: Mapping[str, str], names: Mapping[str, str]
    ) -> None:
        known = self._definition(name)
        if known is None:
            self._originals[name] = content
            self._targets[name] = {one: names.get(one, one) for one in _definition_names(content)}
            self.definitions[name] = orjson.dumps(_with_names(content, renames))
            return
        kinds = _merge_kinds(known, content)
        if kinds is None:
            return
        if name in self._schemas:
            self._schemas[name] = known | {_KINDS: kinds}
        else:
            self._originals[name] = known | {_KINDS: kinds}
            self.definitions[name] = orjson.dumps(decoded(self.definitions[name]) | {_KINDS: kinds})


def pieces(parts: Mapping[str, bytes]) -> bytes:
    """Return the members of an object in JSON."""
    return b",".join([orjson.dumps(name) + b":" + text for name, text in parts.items()])


def _renamed(
    parts: Mapping[str, JSONObject],
    ours: Callable[[str], JSONObject | None],
    same: Callable[[JSONObject, JSONObject], bool],
    reserved_names: Collection[str],
    different: Collection[tuple[str, str]] = (),
) -> dict[str, str]:
    """
    Return the names under which C{parts} are merged: the original name, unless a different part has it.

    @param parts: The definitions or parameters by name.
    @param ours: Returns the local part with a name, or L{None}.
    @param same: Returns whether two parts are equal.
    @param reserved_names: Names that are not available.
    @param different: Pairs of a part and a name whose definitions are known to differ.
    """
    names: dict[str, str] = {}
    used: set[str] = set()
    for name, content in parts.items():
        new, count = name, 1
        while True:
            existing = ours(new)
            if existing is not None and (name, new) not in different and same(existing, content):
                break
            is_free = existing is None and new not in reserved_names and new not in used
            if is_free and (new == name or new not in parts):
                break
            count += 1
            new = f"{name}_v{count}"
        names[name] = new
        if new != name:
            used.add(new)
    return names


def _definition_names(content: JSONObject) -> set[str]:
    return {one.removeprefix(V2_REFERENCE) for one in _references(content) if one.startswith(V2_REFERENCE)}


def _equal(one: JSONObject, other: JSONObject) -> bool:
    return one == other


def _same_definition(one: JSONObject, other: JSONObject) -> bool:
    """Return whether two definitions are equal apart from their kinds."""
    if one.keys() - {_KINDS} != other.keys() - {_KINDS}:
        return False
    return all(value == other[name] for name, value in one.items() if name != _KINDS)


def _merge_kinds(known: JSONObject, content: JSONObject) -> list[JSONValue] | None:
    """Return the kinds of both, or L{None} if there are no more than the known ones."""
    existing, more = known.get(_KINDS, ()), content.get(_KINDS, ())
    if not _are_kinds(more) or not _are_kinds(existing):
        return None
    new = [kind for kind in more if kind not in existing]
    if not new:
        return None
    return sorted([*existing, *new], key=lambda kind: f"{kind['group']}/{kind['version']}.{kind['kind']}")


def _are_kinds(kinds: JSONValue) -> bool:
    return isinstance(kinds, list | tuple) and all(
        isinstance(kind, dict) and all(isinstance(kind.get(part), str) for part in ("group", "version", "kind"))
        for kind in kinds
    )


def _with_names(content: JSONValue, renames: Mapping[str, str]) -> JSONValue:
    """Return a copy with renamed references; does not change C{content}."""
    if not renames:
        return content
    if isinstance(content, dict):
        return {
            name: renames.get(value, value)
            if name == "$ref" and isinstance(value, str)
            else _with_names(value, renames)
            for name, value in content.items()
        }
    if isinstance(content, list):
        return [_with_names(value, renames) for value in content]
    return content
