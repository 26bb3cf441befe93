"""What webhooks and policies that change objects remember from one round to the next, and how they change them."""

from __future__ import annotations

import orjson
from attrs import define, field

from ..api.resource import JSONObject


@define
class ReinvokeContext:
    """
    What is remembered of the first round.

    @ivar last: The object as it was left.
    @ivar called: Those who want to see later changes.
    @ivar due: Those of them after whom there were some.
    """

    last_output: bytes = b""
    previously_invoked: set[str] = field(factory=set)
    to_reinvoke: set[str] = field(factory=set)

    def require_reinvocation(self) -> None:
        """The object is another than those saw who were called."""
        self.to_reinvoke |= self.previously_invoked
        self.previously_invoked = set()


def canonical_json(obj: JSONObject | None) -> bytes:
    """An object, to compare it with: what it says, whatever the order of its keys."""
    return b"" if obj is None else orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def replace_in_place(obj: JSONObject, new: JSONObject) -> None:
    """Make an object another, in place: the store holds on to it, and to its metadata."""
    meta, fresh = obj.get("metadata"), new.get("metadata")
    obj.clear()
    obj.update(new)
    if isinstance(meta, dict) and isinstance(fresh, dict) and meta is not fresh:
        meta.clear()
        meta.update(fresh)
        obj["metadata"] = meta
