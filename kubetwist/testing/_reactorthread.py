"""
Run Twisted's reactor in a thread, for programs that do not run it themselves.

A process has one reactor, which can be started once: it runs from the first use to the end of the program.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_lock = threading.Lock()
_thread: threading.Thread | None = None
_other_runner: str | None = None


def forbid_thread(runner: str | None) -> None:
    """
    Forbid the start of the reactor in a thread, because C{runner} will run it; L{None} permits it.

    @param runner: The name of the program that runs the reactor, for the error.
    """
    global _other_runner
    _other_runner = runner


def gevent_patches_threads() -> bool:
    """Return whether C{gevent.monkey} has replaced threads by greenlets, among which the reactor would block all."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def running_reactor() -> Any:
    """
    Return the reactor, which runs in another thread than the caller's; start it there if it does not run yet.

    The thread is a daemon: code that disturbs the reactor, such as a trial test in the same process, cannot keep the
    program from ending.

    @raise RuntimeError: The caller is the reactor's own thread, which would wait forever, or L{forbid_thread} was
        called, or gevent has replaced threads.
    """
    global _thread
    if gevent_patches_threads():
        raise RuntimeError(
            "gevent has replaced the threads of this process, and the reactor needs one: use ChildKubeAPI or"
            " SubprocessServer; with pytest, set kubetwist_server = child"
        )
    from twisted.internet import reactor as the_reactor
    from twisted.python import threadable

    reactor: Any = the_reactor
    with _lock:
        if reactor.running:
            if threadable.ioThread == threading.get_ident():
                raise RuntimeError(
                    "this thread runs the reactor: use InProcessServer here, ChildKubeAPI, or SubprocessServer"
                )
            return reactor
        if _other_runner is not None:
            raise RuntimeError(
                f"{_other_runner} runs the reactor: use InProcessServer here, ChildKubeAPI, or SubprocessServer"
            )
        started = threading.Event()

        def run() -> None:
            reactor.callWhenRunning(started.set)
            reactor.run(installSignalHandlers=False)

        def stop_at_exit() -> None:
            # The interpreter joins the threads of the reactor's pool before it ends, and the reactor ends those.
            # This is a thread, as delayed calls of the reactor are cancelled by trial's clean-up.
            threading.main_thread().join()
            if reactor.running:
                reactor.callFromThread(reactor.stop)

        _thread = threading.Thread(target=run, name="kubetwist reactor", daemon=True)
        _thread.start()
        threading.Thread(target=stop_at_exit, name="kubetwist reactor stop", daemon=True).start()
        started.wait()
        return reactor


def wait_for(reactor: Any, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine in the reactor's thread to its end; return its result, or raise its exception."""
    from twisted.internet.defer import Deferred
    from twisted.internet.threads import blockingCallFromThread

    def begin() -> Any:
        return Deferred.fromCoroutine(make())

    result: Result = blockingCallFromThread(reactor, begin)
    return result
