"""Garbage collection: objects that the collector does not visit, and a start without collections."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Final

#: Number of new objects, less the freed ones, after which a server collects garbage. With Python's default of 700 it
#: visits all objects every second while it is written, for up to 25 ms, and finds hardly any garbage.
SERVER_THRESHOLD: Final = 20_000


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


class CollectionPause:
    """
    A pause of garbage collection while modules are imported.

    An import creates objects that stay; the collector visits them again and again, for a tenth of the time of a start.
    """

    _ended = False

    def __init__(self) -> None:
        # At later starts in a process, modules are present.
        self._paused = not CollectionPause._ended and gc.isenabled()
        if self._paused:
            gc.disable()

    def end(self) -> None:
        """Continue collections, without the present objects: they are permanent. Idempotent."""
        if self._paused:
            self._paused = False
            CollectionPause._ended = True
            gc.freeze()
            gc.enable()


def keep_present_objects() -> None:
    """
    Exclude the objects that exist now from garbage collection, and collect seldom, for the life of the process.

    It is for a process that is a server and nothing else.
    """
    gc.collect()
    gc.freeze()
    _, *older = gc.get_threshold()
    gc.set_threshold(SERVER_THRESHOLD, *older)
