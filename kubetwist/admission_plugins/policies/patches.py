"""
Mutations of an object: C{ApplyConfiguration} merges, C{JSONPatch} edits.

@see: kubernetes/apiserver, C{pkg/admission/plugin/policy/mutating/patch}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from ...api.jsonpatch import FailedTest, PatchError, apply_json_patch
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...schema.merge.types import MergeType, TypedError

#: Maximum nesting depth of the patches of policies.
_MAX_DEPTH: Final = 200


class MutationFailed(Exception):
    """A mutation cannot be applied; the failure policy decides. The text is the reference's."""


def apply_operations(obj: JSONObject, value: JSONValue) -> JSONObject:
    """
    Apply a JSON patch.

    @param obj: The object; it is not changed.
    @param value: The result of the expression: a list of L{kubetwist.cel.library.mutation.JSONPatch}.
    @return: The patched object; C{obj} itself if a C{test} operation fails.
    @raise MutationFailed: The patch cannot be applied.
    """
    from ...cel.errors import CelError

    try:
        operations = [one.operation() for one in value]
    except CelError as error:
        raise MutationFailed(error.message) from None
    try:
        patched = apply_json_patch(orjson.loads(orjson.dumps(obj)), operations)
    except PatchError as error:
        if isinstance(error.__cause__, FailedTest):
            return obj
        raise MutationFailed(f"JSON Patch: {error.__cause__ or error.message}") from None
    if not isinstance(patched, dict):
        raise MutationFailed("JSON Patch: the result is not an object")
    return patched


def apply_configuration(obj: JSONObject, value: JSONValue, kind: MergeType) -> JSONObject:
    """
    Merge the result of an expression into an object.

    @param obj: The object; it is not changed, and shares values with the result.
    @param value: A L{kubetwist.cel.library.mutation.ObjectValue}.
    @param kind: The merge type of the object.
    @return: The merged object.
    @raise MutationFailed: The value does not match the type, or changes an atomic list, map or struct.
    """
    from ...cel.errors import CelError
    from ...cel.library.mutation import ObjectValue, to_object, type_mismatches

    if not isinstance(value, ObjectValue):
        raise MutationFailed("unsupported return type from ApplyConfiguration expression")
    problems = type_mismatches(value)
    if problems:
        raise MutationFailed(f"type mismatch: {problems}")
    try:
        patch = to_object(value)
    except CelError as error:
        raise MutationFailed(error.message) from None
    patch = {**patch, "kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    errors = kind.validate(patch, False)
    if errors:
        message = f"failed to convert patch object to typed object: {TypedError.from_errors(errors)}"
        raise MutationFailed(f"error applying patch: {message}")
    atomic = list(_atomic(kind, patch, "", _MAX_DEPTH))
    if atomic:
        message = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationFailed(f"error applying patch: invalid ApplyConfiguration: {message}")
    try:
        merged: JSONObject = kind.merge(obj, patch)
    except TypedError as error:
        raise MutationFailed(f"error applying patch: failed to merge patch: {error}") from None
    return merged


def _atomic(kind: MergeType | None, value: JSONValue, path: str, depth: int) -> Iterator[str]:
    """
    Yield the paths of values with an atomic type.

    @param kind: The type of the value; L{None} if unknown.
    @param value: The value.
    @param path: The path of the value; C{""} for the object itself.
    @param depth: The remaining nesting depth.
    """
    if kind is None or not depth:
        return
    kind = kind.resolve(value)
    if isinstance(value, dict):
        if kind.atomic:
            yield path
        field = getattr(kind, "field", None)
        for name, child in value.items():
            if field is not None:
                yield from _atomic(field(name), child, f"{path}.{name}", depth - 1)
    elif isinstance(value, list):
        if kind.atomic:
            yield path
        for index, child in enumerate(value):
            yield from _atomic(getattr(kind, "item", None), child, f"{path}[{index}]", depth - 1)
