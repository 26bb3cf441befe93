"""
Let Python code find files at paths that belong to the machine, such as the files of a pod's service account.

Libraries have such paths as constants, as default values of parameters, or inside of functions, and a library may be
imported later. Therefore the functions of Python are replaced that open and examine files, and not the paths.

Functions written in C are not covered, except for the module C{ssl}; nor are other processes.
"""

from __future__ import annotations

import builtins
import errno
import functools
import io
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

#: The redirections in use, the newest last: a path, and the path instead of it, or L{None} if there is to be no file.
_redirections: list[Mapping[str, str | None]] = []
_lock = threading.Lock()


def actual_path(path: Any) -> Any:
    """
    Return the path to use instead of C{path}, which can be of any type that functions for files accept.

    @raise FileNotFoundError: There is to be no file.
    """
    if isinstance(path, int) or path is None or not _redirections:
        return path
    try:
        text = os.fsdecode(path)
    except (TypeError, UnicodeError):
        # The caller's function raises the error.
        return path
    for redirection in reversed(_redirections):
        for prefix, target in redirection.items():
            if text == prefix or text.startswith(f"{prefix}/"):
                if target is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
                actual = target + text[len(prefix) :]
                return os.fsencode(actual) if isinstance(path, bytes) else actual
    return path


def _of_path(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that redirects the first argument, if there is one."""

    @functools.wraps(function)
    def redirected(*arguments: Any, **keywords: Any) -> Any:
        if arguments:
            return function(actual_path(arguments[0]), *arguments[1:], **keywords)
        for name in ("path", "file"):
            if name in keywords:
                keywords[name] = actual_path(keywords[name])
        return function(**keywords)

    return redirected


def _access(function: Callable[..., bool]) -> Callable[..., bool]:
    """Return C{os.access}, which raises no error for missing files."""
    redirected = _of_path(function)

    @functools.wraps(function)
    def access(*arguments: Any, **keywords: Any) -> bool:
        try:
            answer: bool = redirected(*arguments, **keywords)
        except FileNotFoundError:
            return False
        return answer

    return access


def _of_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of C{SSLContext} that redirects all file arguments."""

    @functools.wraps(function)
    def redirected(context: ssl.SSLContext, *arguments: Any, **keywords: Any) -> Any:
        # The arguments are paths, except for a password and certificates, which do not begin like a path.
        paths = {
            name: actual_path(value) if name.endswith(("file", "path")) else value for name, value in keywords.items()
        }
        return function(context, *map(actual_path, arguments), **paths)

    return redirected


#: Functions that examine files; some exist on Linux only.
_OS_FUNCTIONS: Final = ("open", "stat", "lstat", "listdir", "scandir", "readlink", "listxattr", "getxattr")
#: Where functions are replaced, their names, and what makes the replacements.
_REPLACED: Final[tuple[tuple[Any, str, Callable[[Any], Any]], ...]] = (
    (builtins, "open", _of_path),
    (io, "open", _of_path),
    *((os, name, _of_path) for name in _OS_FUNCTIONS if hasattr(os, name)),
    (os, "access", _access),
    (ssl.SSLContext, "load_verify_locations", _of_context),
    (ssl.SSLContext, "load_cert_chain", _of_context),
)
#: Functions are in these sets, which other modules examine.
_CAPABILITIES: Final = (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids)
#: The functions before they were replaced, to be restored in reverse.
_originals: list[tuple[Any, str, Any]] = []


@contextmanager
def redirected_paths(redirection: Mapping[str, str | None]) -> Iterator[None]:
    """
    Redirect paths of files and directories, for all threads of the process.

    @param redirection: Absolute paths, and the paths to use instead: L{None} if there is to be no file.
    """
    with _lock:
        if not _redirections:
            _replace()
        _redirections.append(redirection)
    try:
        yield
    finally:
        with _lock:
            del _redirections[next(at for at, one in enumerate(_redirections) if one is redirection)]
            if not _redirections:
                _restore()


def _replace() -> None:
    for place, name, make in _REPLACED:
        original = getattr(place, name)
        replacement = make(original)
        for functions in _CAPABILITIES:
            if original in functions:
                functions.add(replacement)
        # A method that the class inherits is deleted again afterwards.
        _originals.append((place, name, place.__dict__.get(name)))
        setattr(place, name, replacement)


def _restore() -> None:
    while _originals:
        place, name, original = _originals.pop()
        for functions in _CAPABILITIES:
            functions.discard(getattr(place, name))
        if original is None:
            delattr(place, name)
        else:
            setattr(place, name, original)
