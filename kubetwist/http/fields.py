"""Header fields that are sent in many responses, encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["NO_LINES", "FieldLines"]


class FieldLines:
    """
    Header fields that do not change.

    @ivar pairs: Names and values.
    @ivar lines: The same as HTTP/1.1 writes them.
    """

    __slots__ = ("lines", "pairs")

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        self.pairs = tuple(pairs)
        self.lines = b"".join([b"%b: %b\r\n" % pair for pair in self.pairs])


NO_LINES: Final = FieldLines(())
