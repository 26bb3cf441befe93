"""
Twisted's reactor in a thread, for programs that do not run it themselves.

There is one reactor in a process, and it can be started once: it runs from the first use to the end of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_lock = threading.Lock()
_thread: threading.Thread | None = None

#: How often the reactor looks whether the program is over, in seconds.
_LOOK = 0.1


def running_reactor() -> Any:
    """
    The reactor, running in another thread than the caller's; started there if it does not run yet.

    @raise RuntimeError: The caller is the reactor's own thread, where waiting would be for ever.
    """
    global _thread
    from twisted.internet import reactor as the_reactor
    from twisted.internet.task import LoopingCall
    from twisted.python import threadable

    reactor: Any = the_reactor
    with _lock:
        if reactor.running:
            if threadable.ioThread == threading.get_ident():
                raise RuntimeError("this thread runs the reactor: use InProcessServer here, or SubprocessServer")
            return reactor
        started = threading.Event()

        def look() -> None:
            # Threads of the reactor's pool are waited for when the interpreter ends, so they must end before.
            if not threading.main_thread().is_alive():
                reactor.stop()

        def run() -> None:
            reactor.callWhenRunning(started.set)
            reactor.callWhenRunning(LoopingCall(look).start, _LOOK)
            reactor.run(installSignalHandlers=False)

        _thread = threading.Thread(target=run, name="kubetwist reactor")
        _thread.start()
        started.wait()
        return reactor


def wait_for(reactor: Any, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine in the reactor's thread, to its end; give what it gives, and raise what it raises."""
    from twisted.internet.defer import Deferred
    from twisted.internet.threads import blockingCallFromThread

    def begin() -> Any:
        return Deferred.fromCoroutine(make())

    result: Result = blockingCallFromThread(reactor, begin)
    return result
