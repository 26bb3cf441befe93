"""
A L{KubeAPI} in a child process, controlled through pipes: for test suites that run the reactor themselves.

Messages are pickled: both ends are trusted, and the pipes are private.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final

from attrs import frozen

from ..api.jsontypes import JSONObject
from ._connection import ServerHandle
from ._eventually import EventuallyMixin
from ._process import ServerNotReady
from ._simulation import SimulationMixin
from ._waiting import WaitingMixin
from .expectations import RequestExpectations

if TYPE_CHECKING:
    from .manifests import Objects, Sources

#: With C{-m}, Python would warn that this module is imported before it is run.
_PROGRAM: Final = "from kubetwist.testing._child import main; main()"
#: The target of calls to the server itself.
_SERVER: Final = 0


class Remote:
    """A proxy of an object in the child process: a fault, a log, a snapshot. It forwards calls and attribute reads."""

    def __init__(self, child: ChildKubeAPI, number: _Number) -> None:
        self._child = child
        self._number = number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._child._get_attribute(self._number.number, name)

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._number.end:
            self._child._get_attribute(self._number.number, self._number.end)()


@frozen
class _Number:
    """
    The representation of a L{Remote} in the pipe.

    @ivar end: The method to call at the end of its context.
    """

    number: int
    end: str = ""


class ChildKubeAPI(WaitingMixin, EventuallyMixin, SimulationMixin, RequestExpectations, ServerHandle):
    """
    A context manager, or C{start()} and C{stop()}, with the methods of L{KubeAPI}.

    Functions, such as C{where=}, must be module-level functions, since they are pickled.
    """

    def __init__(self, *arguments: str, controllers: str | None = None, load: Sources = ()) -> None:
        """
        @param arguments: Further flags of C{twist kubeapi}.
        @param controllers: As C{--controllers}: C{""} for none; L{None} for the server's default.
        @param load: What L{start} loads: paths, glob patterns and objects. C{reset} returns to the state afterwards.
        """
        self._load = load
        self._arguments = arguments if controllers is None else (*arguments, f"--controllers={controllers}")
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> ChildKubeAPI:
        """
        Start the server, and wait until it is ready and everything is loaded.

        @raise ServerNotReady: The start failed.
        @raise kubetwist.testing.manifests.LoadError: A file cannot be read, or the server rejected an object.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._connection = self._exchange(None)
        except EOFError:
            raise ServerNotReady(f"exit code {self._process.wait()}") from None
        if self._load:
            from ._loading import load_sources

            try:
                load_sources(self.connection, self._load)
                self._get_attribute(_SERVER, "set_baseline")()
            except BaseException:
                self.stop()
                raise
        return self

    def load(self, source: Objects, namespace: str = "default") -> list[JSONObject]:
        """As L{InProcessServer.load}."""
        from ._loading import load_objects

        return load_objects(self.connection, source, namespace)

    def stop(self) -> None:
        """Stop the server, and wait for the end of the process. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait()
            process.stdout.close()

    def __enter__(self) -> ChildKubeAPI:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._get_attribute(_SERVER, name)

    def _get_attribute(self, number: int, name: str) -> Any:
        """Return an attribute of an object in the child process; for a method, a function that calls it."""
        kind, value = self._exchange((number, name, None))
        if kind != "method":
            return self._wrap(value)

        def call(*arguments: Any, **keywords: Any) -> Any:
            arguments_ = tuple(one._number if isinstance(one, Remote) else one for one in arguments)
            return self._wrap(self._exchange((number, name, (arguments_, keywords)))[1])

        return call

    def _wrap(self, value: Any) -> Any:
        return Remote(self, value) if isinstance(value, _Number) else value

    def _exchange(self, request: Any) -> Any:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None, "it was not started"
        with self._lock:
            if request is not None:
                process.stdin.write(pickle.dumps(request))
                process.stdin.flush()
            ok, answer = pickle.load(process.stdout)
        if not ok:
            raise answer
        return answer


def serve(arguments: list[str], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Serve requests in the child process until the pipe is closed."""
    from ._inprocess import KubeAPI

    def answer(ok: bool, value: Any) -> None:
        try:
            data = pickle.dumps((ok, value))
        except Exception as error:
            data = pickle.dumps((False, TypeError(f"this does not go to another process: {error}")))
        answers.write(data)
        answers.flush()

    with KubeAPI(*arguments) as server:
        objects: list[Any] = [server]
        answer(True, server.connection)
        while True:
            try:
                number, name, call = pickle.load(requests)
            except EOFError:
                return
            try:
                attribute = getattr(objects[number], name)
                if call is None:
                    answer(True, ("method", None) if callable(attribute) else ("value", attribute))
                    continue
                positional, keywords = call
                result = attribute(
                    *(objects[one.number] if isinstance(one, _Number) else one for one in positional), **keywords
                )
                if type(result).__module__ in _REMOTE_MODULES:
                    ends = [end for end in ("remove", "stop") if hasattr(result, end)]
                    objects.append(result)
                    result = _Number(len(objects) - 1, "".join(ends))
                answer(True, ("value", result))
            except Exception as error:
                answer(False, error)


#: Objects of these modules are not sent, but represented by a L{Remote}.
_REMOTE_MODULES: Final = ("kubetwist.testing.requests", "kubetwist.testing.state")


def main() -> None:
    """Serve on the standard pipes, which other code can no longer use."""
    # Pickles refer to this module by its name, but it runs as C{__main__}.
    from kubetwist.testing import _child as child

    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        child.serve(sys.argv[1:], requests, answers)


if __name__ == "__main__":
    main()
