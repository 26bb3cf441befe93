"""Deterministic measures of what a connection costs: bytes that it holds, and calls that it makes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType)


def held_bytes(root: object, *excluded: object) -> int:
    """
    Return the bytes of all objects that can be reached from C{root}.

    @param excluded: Objects that other connections use too, such as the site.
    """
    seen = {id(one) for one in excluded}
    waiting, total = [root], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _SHARED):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting.extend(gc.get_referents(one))
    return total


def count_calls(function: Callable[[], object]) -> int:
    """Call a function, and return the number of calls of Python functions that it makes."""
    calls = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls
