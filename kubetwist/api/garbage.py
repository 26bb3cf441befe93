"""Garbage collection: objects that the collector does not visit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def _find_untrack() -> Callable[[object], object]:
    """Return C{PyObject_GC_UnTrack} of CPython; a function without effect elsewhere."""
    try:
        function = ctypes.pythonapi.PyObject_GC_UnTrack
    except AttributeError:
        return lambda obj: None
    function.argtypes = [ctypes.py_object]
    function.restype = None
    return function


#: Exclude an object from garbage collection; it is freed when the last reference to it ends. The collector stops the
#: process while it visits all other objects; it visits neither this one nor what this one alone refers to. A cycle of
#: references through the object is never freed. A dictionary is included again by the next assignment to a key.
untrack: Callable[[object], object] = _find_untrack()
