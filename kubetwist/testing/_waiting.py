"""
Wait for objects: C{wait_for} of the servers, by LIST and WATCH, and without polling.

The time limit is real time, also while the server's clock is stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..api.jsontypes import JSONValue

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from ._connection import Connection
    from ._criteria import Where

#: Default time limit in seconds.
DEFAULT_TIMEOUT: Final = 10.0


class WaitTimeout(AssertionError, TimeoutError):
    """What a test waits for has not happened in time; the text has what was waited for, and the last object seen."""


class WaitingMixin:
    """Adds C{wait_for} to servers whose methods block."""

    if TYPE_CHECKING:

        @property
        def connection(self) -> Connection:
            """Return the connection data."""
            raise NotImplementedError

    def wait_for(
        self,
        resource: object,
        name: str = "",
        *,
        condition: str | Iterable[str] | None = None,
        jsonpath: str | Iterable[str] | Mapping[str, JSONValue] | None = None,
        where: Where | None = None,
        absent: bool = False,
        namespace: str | None = None,
        all_namespaces: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        count: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Any:
        """
        Wait until an object exists and meets all criteria, or until all objects of a selection do.

        @param resource: C{"pods/web-0"}, C{"deployments.apps/web"}, an object with C{apiVersion}, C{kind} and
            C{metadata}, or an object of a client library; without a name, all objects of the resource. A resource that
            is named with its group may be served later.
        @param name: The name of the object, if C{resource} has none.
        @param condition: C{"Ready"} or C{"Ready=False"}, as C{kubectl wait --for=condition=}; also several.
        @param jsonpath: C{"{.status.phase}=Running"}, as C{kubectl wait --for=jsonpath=}; also several, or a mapping
            of paths to JSON values.
        @param where: A function of the object that returns a true value; a missing field in it means "not yet".
        @param absent: Wait until there is no object that meets the criteria.
        @param namespace: The namespace; by default the one of C{resource}, or C{"default"}.
        @param all_namespaces: Select objects of all namespaces.
        @param label_selector: Selects objects by labels.
        @param field_selector: Selects objects by fields.
        @param count: The number of selected objects that meet the criteria; by default all of them, and at least one.
        @param timeout: Seconds of real time.
        @return: The object; the list of the objects of a selection; L{None} if they are absent.
        @raise WaitTimeout: It did not happen in time.
        @raise LookupError: The server does not have the resource, which is named without its group.
        """
        from ._waiter import Wait, Waiter

        return Waiter(self.connection, timeout).run(
            Wait.of(
                resource,
                name,
                namespace=namespace,
                all_namespaces=all_namespaces,
                label_selector=label_selector,
                field_selector=field_selector,
                condition=condition,
                jsonpath=jsonpath,
                where=where,
                absent=absent,
                count=count,
            )
        )


class AsyncWaitingMixin:
    """Adds C{wait_for} to servers on the reactor, where it is awaited."""

    _reactor: Any

    if TYPE_CHECKING:

        @property
        def connection(self) -> Connection:
            """Return the connection data."""
            raise NotImplementedError

    async def wait_for(
        self, resource: object, name: str = "", *, timeout: float = DEFAULT_TIMEOUT, **criteria: Any
    ) -> Any:
        """
        As L{WaitingMixin.wait_for}; C{where} is called in another thread. Cancelling ends the wait.

        @param resource: The object, or the resource.
        @param name: The name of the object.
        @param timeout: Seconds of real time.
        @param criteria: The other parameters of L{WaitingMixin.wait_for}.
        """
        from ._waiter import Wait, Waiter

        waiter = Waiter(self.connection, timeout)
        wait = Wait.of(resource, name, **criteria)
        return await run_in_thread(self._reactor, lambda: waiter.run(wait), waiter.cancel)


def run_in_thread(reactor: Any, call: Callable[[], Any], cancel: Callable[[], object]) -> Deferred[Any]:
    """
    Run a blocking call in a new thread, since the reactor's pool belongs to the server.

    @param reactor: The reactor, in whose thread the Deferred fires.
    @param call: The call.
    @param cancel: Ends the call early; called when the Deferred is cancelled.
    """
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    def stop(_: Deferred[Any]) -> None:
        cancel()

    done: Deferred[Any] = Deferred(stop)

    def run() -> None:
        try:
            result: Any = call()
        except BaseException:
            result = Failure()
        reactor.callFromThread(fire, result)

    def fire(result: Any) -> None:
        if not done.called:
            done.callback(result)

    threading.Thread(target=run, name="kubetwist wait", daemon=True).start()
    return done
