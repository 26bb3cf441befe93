"""
Policies from manifest files. They apply from the first request, and the API can neither read nor change them.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/manifest}, C{pkg/admission/plugin/manifest}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...api.decoding import BodyError, decode_yaml
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.objectmeta import validate_metadata_on_create
from ...api.resource import GroupVersionKind, JSONObject
from ...registry.generic.codec import Codec
from ...registry.strategies import strategy_for
from ..pluginconfig import (
    InvalidConfiguration,
    decode_configuration,
)

if TYPE_CHECKING:
    from ...registry.admissioncontext import ServerAdmissionContext
    from ...schema.definitions import Definitions

GROUP: Final = "admissionregistration.k8s.io"
#: The suffix of the names of such policies and bindings.
SUFFIX: Final = ".static.k8s.io"
_EXTENSIONS: Final = (".yaml", ".yml", ".json")
#: Maximum size of a file in bytes, and maximum number of files in the directory.
_MAX_FILE_BYTES: Final = 3 * 1024 * 1024
_MAX_FILES: Final = 1000
_DOCUMENT_SEPARATOR = re.compile(rb"^---[ \t]*(?:#.*)?$", re.M)


def read_manifests(
    configuration: JSONValue, kind: str, server: ServerAdmissionContext
) -> tuple[list[JSONObject], list[JSONObject]]:
    """
    Return the policies and bindings of the directory that a plugin's configuration names.

    @param configuration: C{<kind>Configuration}, decoded; L{None} for none.
    @param kind: C{"ValidatingAdmissionPolicy"} or C{"MutatingAdmissionPolicy"}.
    @param server: Provides the types of the objects.
    @return: Policies and bindings with defaults, sorted by name; empty without a directory.
    @raise InvalidConfiguration: The directory or an object in it is invalid.
    """
    if configuration is None:
        return [], []
    versions = ("apiserver.config.k8s.io/v1",)
    name = decode_configuration(configuration, f"{kind}Configuration", versions, ("staticManifestsDir",)).get(
        "staticManifestsDir"
    )
    if not name:
        return [], []
    folder = Path(name)
    if not folder.is_absolute():
        raise InvalidConfiguration(f'staticManifestsDir: Invalid value: "{name}": must be an absolute file path')
    if not folder.is_dir():
        raise InvalidConfiguration(f'staticManifestsDir: Invalid value: "{name}": must be a directory')
    assert server.definitions is not None, "a server that reads policies has their types"
    return _Reader(kind, server.definitions).read(folder)


class _Reader:
    """Reads and validates the manifests of a directory."""

    def __init__(self, kind: str, definitions: Definitions) -> None:
        self._definitions = definitions
        self._kinds = (kind, f"{kind}Binding")
        #: Objects and their files, by kind and name.
        self._objects: dict[str, dict[str, tuple[JSONObject, Path]]] = {one: {} for one in self._kinds}

    def read(self, folder: Path) -> tuple[list[JSONObject], list[JSONObject]]:
        """Return all policies and bindings in a directory."""
        try:
            files = [one for one in sorted(folder.iterdir()) if one.suffix.lower() in _EXTENSIONS and one.is_file()]
            if len(files) > _MAX_FILES:
                raise InvalidConfiguration(f"{folder}: more than {_MAX_FILES} files")
            for file in files:
                self._read_file(file)
        except OSError as error:
            raise InvalidConfiguration(f"failed to read manifest directory {quoted(str(folder))}: {error}") from None
        policies, bindings = ([obj for _, (obj, _) in sorted(self._objects[one].items())] for one in self._kinds)
        for binding in bindings:
            self._check_binding(binding)
        return policies, bindings

    def _read_file(self, file: Path) -> None:
        if file.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidConfiguration(f"{file}: longer than {_MAX_FILE_BYTES} bytes")
        for document in filter(None, map(bytes.strip, _DOCUMENT_SEPARATOR.split(file.read_bytes()))):
            try:
                for value in _items(decode_yaml(document).value):
                    self._add(value, file)
            except (BodyError, APIStatusError) as error:
                message = error.as_body_of_object() if isinstance(error, BodyError) else error.message
                raise InvalidConfiguration(f"error loading {file}: {message}") from None
            except ValueError as error:
                raise InvalidConfiguration(f"error loading {file}: {error}") from None

    def _add(self, value: JSONValue, file: Path) -> None:
        """
        Validate an object and add it.

        @raise ValueError: The object is invalid; the text is the reference's.
        @raise APIStatusError: A field of the object is invalid.
        """
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind not in self._kinds:
            raise ValueError(f"unsupported resource type {kind or 'without a kind'}")
        gvk = GroupVersionKind(GROUP, "v1", str(kind))
        problems: list[str] = []
        obj = Codec(self._definitions, gvk, gvk).decode(value, problems)
        if problems:
            raise ValueError(f"strict decoding error: {', '.join(problems)}")
        name: str = obj["metadata"].get("name") or ""
        if not name:
            raise ValueError(f"resource in file {quoted(str(file))} must have a name")
        if not name.endswith(SUFFIX):
            raise ValueError(
                f"{quoted(name)} in file {quoted(str(file))} must have a name ending with {quoted(SUFFIX)}"
            )
        objects = self._objects[gvk.kind]
        if name in objects:
            previous = quoted(str(objects[name][1]))
            raise ValueError(
                f"duplicate name {quoted(name)} found in file {quoted(str(file))} (previously seen in {previous})"
            )
        strategy = strategy_for(GROUP, gvk.kind)
        strategy.default(obj)
        causes = [*validate_metadata_on_create(obj["metadata"], False, strategy.validate_name), *strategy.validate(obj)]
        if causes:
            raise APIStatusError.invalid(gvk.group_kind, name, causes)
        if obj["spec"].get("paramKind") is not None:
            raise ValueError(f"{gvk.kind} {quoted(name)}: spec.paramKind is not supported for static manifests")
        objects[name] = (obj, file)

    def _check_binding(self, binding: JSONObject) -> None:
        name, policy = quoted(binding["metadata"]["name"]), binding["spec"]["policyName"]
        if not policy.endswith(SUFFIX):
            raise InvalidConfiguration(
                f"binding {name}: spec.policyName {quoted(policy)} must end with {quoted(SUFFIX)}"
            )
        if binding["spec"].get("paramRef") is not None:
            raise InvalidConfiguration(f"binding {name}: spec.paramRef is not supported for static manifests")
        if policy not in self._objects[self._kinds[0]]:
            raise InvalidConfiguration(
                f"binding {name} references policy {quoted(policy)} which does not exist in the manifest directory"
            )


def _items(value: JSONValue) -> Iterator[JSONValue]:
    """Return a document, or its items if it is a list."""
    if isinstance(value, dict) and value.get("kind") == "List" and value.get("apiVersion") == "v1":
        yield from value.get("items") or ()
    elif value is not None:
        yield value
