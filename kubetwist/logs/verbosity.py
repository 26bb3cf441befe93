"""
Log verbosity: C{-v}, and C{--vmodule} for single modules.

@see: kubernetes/klog, C{klog.go}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any, Final

from twisted.logger import LogEvent, LogLevel

#: Levels of the access log and of debug messages.
ACCESS: Final = 3
DEBUG: Final = 4
#: Module name of the access log, as in kube-apiserver.
HTTPLOG: Final = "httplog"

#: Levels are 32 bit integers, as in kube-apiserver.
_HIGHEST: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_LONGEST: Final = 4096


def parse_level(text: str) -> int:
    """
    Parse the value of C{-v}.

    @raise ValueError: With the message of C{strconv.ParseInt}.
    """
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("invalid syntax")
    level = int(text)
    if not -_HIGHEST - 1 <= level <= _HIGHEST:
        raise ValueError("value out of range")
    return level


def parse_modules(text: str) -> tuple[tuple[str, int], ...]:
    """
    Parse the value of C{--vmodule}: C{pattern=N,...}.

    @raise ValueError: The value is invalid.
    """
    if len(text) > _LONGEST:
        raise ValueError("it is too long")
    levels = []
    for part in filter(None, text.split(",")):
        pattern, equals, level = part.partition("=")
        if not equals or not pattern or not level:
            raise ValueError("syntax error: expect comma-separated list of filename=N")
        levels.append((pattern.strip(), _natural(level.strip())))
    return tuple(levels)


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
    The log verbosity of one server.

    A pattern matches the last part of a module's name, C{watchcache}, or the whole name if it contains C{/}:
    C{kubetwist/storage/*}. The first matching pattern decides.

    @ivar level: Level of modules without a matching pattern.
    @ivar requests: Whether the access log is enabled.
    """

    def __init__(self, level: int = 0, modules: Sequence[tuple[str, int]] = ()) -> None:
        self.level = level
        self._modules = [("/" in pattern, re.compile(translate(pattern)), number) for pattern, number in modules]
        self._level_by_module: dict[str, int] = {}
        self.requests = False
        self._changed()

    def set(self, level: int) -> None:
        """Set the level at run time."""
        self.level = level
        self._changed()

    def level_for(self, module: str) -> int:
        """
        Return the level of a module.

        @param module: The import name of the module, or of a class in it.
        """
        cached = self._level_by_module.get(module)
        if cached is None:
            cached = self._level_by_module[module] = self._find(module)
        return cached

    def enabled(self, event: LogEvent, lowest: Any = LogLevel.info) -> bool:
        """Return whether an event is logged. Debug events depend on the level of their module."""
        level = event.get("log_level")
        if level is None or level >= lowest:
            return True
        # The cache is bounded, since there are as many namespaces as modules.
        return level is LogLevel.debug and self.level_for(str(event.get("log_namespace", ""))) >= DEBUG

    def _changed(self) -> None:
        self._level_by_module.clear()
        self.requests = self.level_for(HTTPLOG) >= ACCESS

    def _find(self, module: str) -> int:
        parts = module.split(".")
        # The namespaces of loggers of classes end with the class name.
        while len(parts) > 1 and parts[-1].lstrip("_")[:1].isupper():
            parts.pop()
        whole, last = "/".join(parts), parts[-1]
        for is_path, pattern, level in self._modules:
            if pattern.match(whole if is_path else last):
                return level
        return self.level
