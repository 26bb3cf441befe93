"""
C{/logs}: the files of the machine's log directory, enabled by --enable-logs-handler.

@see: kubernetes/kubernetes, C{pkg/routes/logs.go}.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar
from urllib.parse import quote

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPullProducer, IReactorThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure
from zope.interface import implementer

from ...http.request import TEXT, KubeRequest
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp, add_route, new_app

if TYPE_CHECKING:
    from ..config import ServerConfig

PATH: Final = "/logs"
#: Maximum number of listed files of a directory.
_MAX_LISTED: Final = 10_000
_PIECE: Final = 128 * 1024


class FileNotServed(Exception):
    """The file does not exist or is not served."""


def open_below(root: str, parts: list[str]) -> int:
    """
    Open a file or a directory below C{root}, one path segment at a time, without symbolic links or parent directories.

    @return: The file descriptor.
    @raise NotThere: It does not exist or is not served.
    """
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileNotServed from error
    for name in parts:
        if name in (".", "..") or "/" in name or "\0" in name or len(name.encode("utf-8", "surrogatepass")) > 255:
            os.close(descriptor)
            raise FileNotServed
        # Opening a pipe would block until its other end is opened.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        parent = descriptor
        try:
            descriptor = os.open(name, flags, dir_fd=parent)
        except (OSError, ValueError) as error:
            raise FileNotServed from error
        finally:
            os.close(parent)
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        os.close(descriptor)
        raise FileNotServed
    return descriptor


def listing(descriptor: int) -> bytes:
    """Return the content of a directory as a page of links."""
    lines: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if len(lines) >= _MAX_LISTED:
                break
            name = entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
            lines.append(f'<a href="{quote("./" + name, safe="/", errors="surrogateescape")}">{escape(name)}</a>\n')
    page = (
        f'<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n{"".join(sorted(lines))}</pre>\n'
    )
    return page.encode("utf-8", "replace")


P = ParamSpec("P")
T = TypeVar("T")


class LogsEndpoint:
    """Serves files as text, and directories as pages of links."""

    def __init__(self, root: str, reactor: IReactorThreads) -> None:
        self._root = root
        self._reactor = reactor

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, ("GET", "HEAD"), PATH, self._redirect, slashes=False)
        add_route(app, ("GET", "HEAD"), f"{PATH}/<rest:path>", self._respond)
        return app

    def _redirect(self, request: KubeRequest) -> None:
        request.setHeader(b"location", f"{PATH}/".encode())
        request.respond(301, b"", TEXT)

    def _respond(self, request: KubeRequest, path: str) -> None:
        opened = self._in_thread(self._open, [part for part in path.split("/") if part])
        opened.addCallbacks(
            self._send, self._respond_not_found, callbackArgs=(request, f"{PATH}/{path}"), errbackArgs=(request,)
        )
        opened.addErrback(request.handle_failure)

    def _in_thread(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), call, *arguments, **options)

    def _open(self, parts: list[str]) -> tuple[int, int, bytes | None]:
        descriptor = open_below(self._root, parts)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                page = listing(descriptor)
                os.close(descriptor)
                return -1, 0, page
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status.st_size, None

    def _respond_not_found(self, failure: Failure, request: KubeRequest) -> None:
        failure.trap(FileNotServed)
        request.respond_text(404, "404 page not found\n")

    def _send(self, opened: tuple[int, int, bytes | None], request: KubeRequest, path: str) -> None:
        descriptor, size, page = opened
        # Browsers must not execute the content of a log.
        request.setHeader(b"x-content-type-options", b"nosniff")
        if page is not None:
            if not path.endswith("/"):
                # Links are relative to the directory.
                request.setHeader(b"location", (quote(path.rpartition("/")[2]) + "/").encode())
                request.respond(301, b"", TEXT)
                return
            request.setHeader(b"content-security-policy", b"default-src 'none'")
            request.respond(200, page, b"text/html; charset=utf-8")
        elif request.finished or request.disconnected or request.method == b"HEAD":
            os.close(descriptor)
            request.setHeader(b"content-length", b"%d" % size)
            request.respond(200, b"", TEXT)
        else:
            _File(self._in_thread, request, descriptor, size).start()


@implementer(IPullProducer)
class _File:
    """Producer of a file, up to its size when it was opened, at the pace of the client."""

    def __init__(
        self, in_thread: Callable[..., Deferred[bytes]], request: KubeRequest, descriptor: int, size: int
    ) -> None:
        self._in_thread = in_thread
        self._request = request
        self._number = descriptor
        self._remaining = size
        self._reading = False
        self._closed = False

    def start(self) -> None:
        """Start the response."""
        request = self._request
        request.setResponseCode(200)
        request.setHeader(b"content-type", TEXT)
        request.setHeader(b"content-length", b"%d" % self._remaining)
        request.notifyFinish().addErrback(lambda reason: self.stopProducing())
        if not self._remaining:
            self._finish()
            return
        request.registerProducer(self, False)

    def resumeProducing(self) -> None:
        """Read the next piece."""
        if self._reading or self._closed:
            return
        self._reading = True
        piece = self._in_thread(os.read, self._number, min(_PIECE, self._remaining))
        piece.addCallbacks(self._write, self._fail)
        piece.addErrback(self._request.handle_failure)

    def _write(self, piece: bytes) -> None:
        self._reading = False
        if self._closed:
            os.close(self._number)
            return
        if not piece:
            # The file was truncated in between.
            self._fail(None)
            return
        self._remaining -= len(piece)
        self._request.write(piece)
        if not self._remaining and not self._closed:
            self._request.unregisterProducer()
            self._finish()

    def _fail(self, failure: Failure | None) -> None:
        self._reading = False
        self._close()
        self._request.truncate_response()

    def _finish(self) -> None:
        self._close()
        self._request.finish()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._number)

    def stopProducing(self) -> None:
        """Stop: the client has disconnected."""
        if self._reading:
            # The reading thread closes the file.
            self._closed = True
        else:
            self._close()


def refuse_method(request: KubeRequest, allowed: list[str]) -> None:
    """Answer a request with another method, in the reference's text."""
    request.respond_text(405, "405: Method Not Allowed\n")


def install_logs(mux: DelegatingMux, config: ServerConfig) -> None:
    """Register the path if it is enabled."""
    if config.options["enable-logs-handler"]:
        endpoint = LogsEndpoint(config.options["logs-directory"], config.reactor)
        mux.handle_prefix(PATH, RoutedApp(endpoint.make_app, refuse_method))
