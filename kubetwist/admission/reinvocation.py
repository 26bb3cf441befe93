"""Reinvocation state of mutating webhooks and policies, and in-place replacement of objects."""

from __future__ import annotations

import orjson
from attrs import define, field

from ..api.resource import JSONObject


@define
class ReinvokeContext:
    """
    The state that a plugin keeps from the first round (C{webhookReinvokeContext}).

    @ivar last: The object as it was left.
    @ivar called: Those who want to see later changes.
    @ivar due: Those of them after whom there were some.
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
    meta, fresh = obj.get("metadata"), new.get("metadata")
    obj.clear()
    obj.update(new)
    if isinstance(meta, dict) and isinstance(fresh, dict) and meta is not fresh:
        meta.clear()
        meta.update(fresh)
        obj["metadata"] = meta
