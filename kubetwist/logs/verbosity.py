"""
How much is logged: C{-v}, and C{--vmodule} for single modules.

@see: kubernetes/klog, C{klog.go}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any, Final

from twisted.logger import LogEvent, LogLevel

#: From these on there are lines about every request, and those for debugging.
ACCESS: Final = 3
DEBUG: Final = 4
#: The module that the lines about requests belong to, as in the reference.
HTTPLOG: Final = "httplog"

#: The level of a verbosity is a 32 bit number in the reference.
_HIGHEST: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_LONGEST: Final = 4096


def parse_level(text: str) -> int:
    """
    A level, as C{-v} takes it.

    @raise ValueError: As C{strconv.ParseInt} has it.
    """
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("invalid syntax")
    level = int(text)
    if not -_HIGHEST - 1 <= level <= _HIGHEST:
        raise ValueError("value out of range")
    return level


def parse_modules(text: str) -> tuple[tuple[str, int], ...]:
    """
    The argument of C{--vmodule}: C{pattern=N,...}.

    @raise ValueError: It makes no sense.
    """
    if len(text) > _LONGEST:
        raise ValueError("it is too long")
    found = []
    for part in filter(None, text.split(",")):
        pattern, equals, level = part.partition("=")
        if not equals or not pattern or not level:
            raise ValueError("syntax error: expect comma-separated list of filename=N")
        found.append((pattern.strip(), _natural(level.strip())))
    return tuple(found)


def _natural(text: str) -> int:
    try:
        level = parse_level(text)
    except ValueError:
        raise ValueError("syntax error: expect comma-separated list of filename=N") from None
    if level < 0:
        raise ValueError("negative value for vmodule level")
    return level


class Verbosity:
    """
    How much one server logs.

    A pattern means modules by the last part of their name, C{watchcache}, or by all of it when there is a C{/} in it:
    C{kubetwist/storage/*}. The first one that means a module decides about it.

    @ivar level: For all other modules.
    @ivar requests: Whether there is a line about every request.
    """

    def __init__(self, level: int = 0, modules: Sequence[tuple[str, int]] = ()) -> None:
        self.level = level
        self._modules = [("/" in pattern, re.compile(translate(pattern)), number) for pattern, number in modules]
        self._known: dict[str, int] = {}
        self.requests = False
        self._changed()

    def set(self, level: int) -> None:
        """Change it while the server runs."""
        self.level = level
        self._changed()

    def of(self, module: str) -> int:
        """How much a module logs; C{module} is the name by which it, or a class in it, is imported."""
        known = self._known.get(module)
        if known is None:
            known = self._known[module] = self._find(module)
        return known

    def shows(self, event: LogEvent, lowest: Any = LogLevel.info) -> bool:
        """Whether an event is to be logged: what is for debugging only where that is wanted."""
        level = event.get("log_level")
        if level is None or level >= lowest:
            return True
        # What is made up of namespaces is not remembered without end: there are as many as modules.
        return level is LogLevel.debug and self.of(str(event.get("log_namespace", ""))) >= DEBUG

    def _changed(self) -> None:
        self._known.clear()
        self.requests = self.of(HTTPLOG) >= ACCESS

    def _find(self, module: str) -> int:
        parts = module.split(".")
        # Loggers of classes are named after the class, too.
        while len(parts) > 1 and parts[-1].lstrip("_")[:1].isupper():
            parts.pop()
        whole, last = "/".join(parts), parts[-1]
        for is_path, pattern, level in self._modules:
            if pattern.match(whole if is_path else last):
                return level
        return self.level
