"""Reinvocation state of mutating webhooks and policies, and in-place replacement of objects."""

from __future__ import annotations

import orjson
from attrs import define, field

from ..api.resource import JSONObject


@define
class ReinvokeContext:
    """
    The state that a plugin keeps from the first round (C{webhookReinvokeContext}).

    @ivar last_output: The object after the last call of the plugin, as canonical JSON.
    @ivar previously_invoked: The ids of reinvocable webhooks or policies that were called since the last change.
    @ivar to_reinvoke: The ids of webhooks or policies to call again, because the object was changed after their call.
    """

    last_output: bytes = b""
    previously_invoked: set[str] = field(factory=set)
    to_reinvoke: set[str] = field(factory=set)

    def require_reinvocation(self) -> None:
        """Mark the webhooks that were called for reinvocation, because the object has changed since."""
        self.to_reinvoke |= self.previously_invoked
        self.previously_invoked = set()


def canonical_json(obj: JSONObject | None) -> bytes:
    """Return an object as JSON with sorted keys, for comparison; C{b""} for L{None}."""
    return b"" if obj is None else orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def replace_in_place(obj: JSONObject, new: JSONObject) -> None:
    """Replace the content of an object in place: the store keeps references to it and to its metadata."""
    meta, new_meta = obj.get("metadata"), new.get("metadata")
    obj.clear()
    obj.update(new)
    if isinstance(meta, dict) and isinstance(new_meta, dict) and meta is not new_meta:
        meta.clear()
        meta.update(new_meta)
        obj["metadata"] = meta
