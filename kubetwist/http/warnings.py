"""C{Warning} headers of responses, which kubectl prints."""

from __future__ import annotations

import unicodedata
from typing import Final

#: Total characters above which every warning is truncated, as in the reference.
_MAX_TOTAL_LENGTH: Final = 4 * 1024
#: Characters of a truncated warning.
_MAX_TRUNCATED_LENGTH: Final = 256


class Warnings:
    """
    The warnings of one request.

    @ivar values: The values of the headers.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self._texts: dict[str, tuple[str, int]] = {}
        self._written = 0
        self._truncating = False

    def add(self, text: str, agent: str = "-", code: int = 299) -> None:
        """Add a warning; repeated and empty texts, and texts that no header can contain, are dropped."""
        if not text or text in self._texts or (self._truncating and self._written >= _MAX_TOTAL_LENGTH):
            return
        self._texts[text] = (agent or "-", code)
        if not self._truncating and self._written + len(text) > _MAX_TOTAL_LENGTH:
            self._truncating = True
            self._written = 0
            self.values = []
            for earlier in self._texts:
                self._write(earlier)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        agent, code = self._texts[text]
        if self._truncating:
            text = text[:_MAX_TRUNCATED_LENGTH]
        if any(unicodedata.category(character) == "Cc" for character in text) or not _is_agent(agent):
            return
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        self._written += len(text)
        self.values.append(f'{code:03d} {agent} "{quoted}"'.encode("utf-8", "replace"))


def _is_agent(agent: str) -> bool:
    return not any(one in '\\"' or one.isspace() or unicodedata.category(one) == "Cc" for one in agent)
