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

#: The maximum nesting depth of the patches of policies.
_DEEPEST: Final = 200


class MutationFailed(Exception):
    """A mutation does not work on this object; the failure policy decides. The text is the reference's."""


def apply_operations(obj: JSONObject, value: JSONValue) -> JSONObject:
    """
    Apply a JSON patch.

    @param obj: Stays as it is.
    @param value: The result of the expression: a list of L{kubetwist.cel.library.mutation.JSONPatch}.
    @return: The patched object; C{obj} itself when a test in the patch says that it is not for this one.
    @raise MutationFailed: It does not apply.
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
        raise MutationFailed("JSON Patch: the object is none any more")
    return patched


def apply_configuration(obj: JSONObject, value: JSONValue, kind: MergeType) -> JSONObject:
    """
    Merge what an expression gave into an object.

    @param obj: Stays as it is, and shares parts with the result.
    @param value: A L{kubetwist.cel.library.mutation.ObjectValue}.
    @raise MutationFailed: It does not fit the type, or would replace what can only be replaced as a whole.
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
    wrong = kind.validate(patch, False)
    if wrong:
        why = f"failed to convert patch object to typed object: {TypedError.from_errors(wrong)}"
        raise MutationFailed(f"error applying patch: {why}")
    atomic = list(_atomic(kind, patch, "", _DEEPEST))
    if atomic:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationFailed(f"error applying patch: invalid ApplyConfiguration: {why}")
    try:
        merged: JSONObject = kind.merge(obj, patch)
    except TypedError as error:
        raise MutationFailed(f"error applying patch: failed to merge patch: {error}") from None
    return merged


def _atomic(kind: MergeType | None, value: JSONValue, path: str, depth: int) -> Iterator[str]:
    """Return the paths of values with an atomic type."""
    if kind is None or not depth:
        return
    kind = kind.resolve(value)
    if isinstance(value, dict):
        if kind.atomic:
            yield path
        field = getattr(kind, "field", None)
        for name, part in value.items():
            if field is not None:
                yield from _atomic(field(name), part, f"{path}.{name}", depth - 1)
    elif isinstance(value, list):
        if kind.atomic:
            yield path
        for index, part in enumerate(value):
            yield from _atomic(getattr(kind, "item", None), part, f"{path}[{index}]", depth - 1)
