"""The admission chain: selects the plugins that handle a request and calls them in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import define, field

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ..api.admission import (
    OPERATIONS,
    AdmissionAttributes,
    ReinvocationContext,
)
from ..api.errors import APIStatusError
from ..api.frozen import frozen
from ..api.latency import ADMISSION, add_latency
from ..api.resource import JSONObject
from ..interfaces import IMeasuredAdmission, IMutatingAdmission, IValidatingAdmission
from ..metrics.registry import Histogram, MetricSnapshot
from ..metrics.summaries import Summary
from ._timeout import (
    TimedOut,
    with_timeout,
)

if TYPE_CHECKING:
    from ..interfaces import IAdmissionPlugin

#: Default timeout of a plugin call, in seconds.
TIMEOUT: Final = 10.0
#: Maximum number of resources whose plugins are cached; custom resources come and go.
_MAX_CACHE_ENTRIES: Final = 4096

#: Prefix of the modules of built-in plugins. Their C{validate} does not modify the object.
_BUILT_IN_MODULES: Final = "kubetwist."
_MUTATION: Final = "mutation"

#: Histogram buckets of durations, in seconds.
_DURATION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
#: Durations of the first bucket, which most calls have, are counted without a search.
_SHORT: Final = _DURATION_BUCKETS[0]
#: The label C{type} of metrics by phase.
_TYPES: Final = {_MUTATION: "admit", "validation": "validate"}

_Call = Callable[[AdmissionAttributes], Any]


@define(eq=False)
class _Handler:
    """
    One plugin in one phase, for one operation.

    @ivar call: The method C{admit} or C{validate} of the plugin.
    @ivar timeout: Timeout in seconds; L{None} for a plugin that has separate timeouts.
    @ivar ignore_failures: Whether the request continues when the plugin itself fails.
    @ivar isolate: Returns a copy or frozen view of the object for the plugin; L{None} to pass the object itself.
    @ivar admitted_seconds: Durations of calls that admitted the request, in seconds.
    @ivar rejected_seconds: Durations of calls that rejected the request, in seconds.
    """

    plugin: Any
    call: _Call
    phase: str
    timeout: float | None
    ignore_failures: bool
    isolate: Callable[[JSONObject], JSONObject] | None
    admitted_seconds: Histogram = field(factory=lambda: Histogram(_DURATION_BUCKETS), repr=False)
    rejected_seconds: Histogram = field(factory=lambda: Histogram(_DURATION_BUCKETS), repr=False)


class _Phase:
    """Durations of one phase for one operation, for admitted and for rejected requests."""

    __slots__ = ("admitted_seconds", "rejected_seconds")

    def __init__(self) -> None:
        self.admitted_seconds = Summary(_DURATION_BUCKETS)
        self.rejected_seconds = Summary(_DURATION_BUCKETS)


def _isolation(
    plugin: IAdmissionPlugin, mutates: bool, ignore_failures: bool
) -> Callable[[JSONObject], JSONObject] | None:
    """
    Return the function that makes the object for a plugin; L{None} for a plugin that gets the object itself.

    A mutating plugin whose failures are ignored works on a copy, so that a failed call leaves no changes. A validating
    third-party plugin gets a frozen object, because changes in this phase would not be validated.
    """
    if mutates:
        return _copy if ignore_failures else None
    return None if type(plugin).__module__.startswith(_BUILT_IN_MODULES) else frozen


class AdmissionChain:
    """
    Calls the enabled plugins.

    The plugins of an operation and resource are cached, so that a plugin that does not handle a request costs nothing.
    Plugins may be synchronous or asynchronous. An exception other than L{APIStatusError} is logged with the name of the
    plugin; the client gets an error without details.
    """

    _log = Logger()

    def __init__(self, plugins: Sequence[IAdmissionPlugin] = (), reactor: IReactorTime | None = None) -> None:
        """
        @param plugins: The plugins in the order of their calls.
        @param reactor: The reactor for timeouts; L{None} for the global one.
        """
        self.plugins = list(plugins)
        self._reactor = reactor
        self._mutating = self._by_operation(IMutatingAdmission, _MUTATION)
        self._validating = self._by_operation(IValidatingAdmission, "validation")
        self._phases = {(phase, operation): _Phase() for phase in _TYPES for operation in OPERATIONS}
        self._handlers: dict[tuple[str, str, str, str], tuple[tuple[_Handler, ...], tuple[_Handler, ...]]] = {}

    def _by_operation(self, interface: Any, phase: str) -> dict[str, list[_Handler]]:
        method = "admit" if interface is IMutatingAdmission else "validate"
        handlers: dict[str, list[_Handler]] = {operation: [] for operation in OPERATIONS}
        for plugin in self.plugins:
            if not interface.providedBy(plugin):
                continue
            ignore_failures = getattr(plugin, "failure_policy", "Fail") == "Ignore"
            for operation in OPERATIONS:
                if plugin.handles(operation):
                    handler = _Handler(
                        plugin,
                        self._caller(getattr(plugin, method), plugin.name, phase, operation),
                        phase,
                        getattr(plugin, "timeout", TIMEOUT),
                        ignore_failures,
                        _isolation(plugin, interface is IMutatingAdmission, ignore_failures),
                    )
                    handlers[operation].append(handler)
        return handlers

    def _caller(self, call: _Call, name: str, phase: str, operation: str) -> _Call:
        """
        Return the function that is called instead of a method of a plugin; a hook for subclasses.

        @param call: The method.
        @param name: The name of the plugin.
        @param phase: C{"mutation"} or C{"validation"}.
        @param operation: The operation of the requests.
        """
        return call

    def _handlers_for(self, attributes: AdmissionAttributes) -> tuple[tuple[_Handler, ...], tuple[_Handler, ...]]:
        key = (attributes.operation, attributes.group, attributes.resource, attributes.subresource)
        try:
            return self._handlers[key]
        except KeyError:
            pass
        operation, group, resource, subresource = key
        handlers = (
            tuple(
                handler
                for handler in self._mutating[operation]
                if handles_resource(handler.plugin, group, resource, subresource)
            ),
            tuple(
                handler
                for handler in self._validating[operation]
                if handles_resource(handler.plugin, group, resource, subresource)
            ),
        )
        if len(self._handlers) >= _MAX_CACHE_ENTRIES:
            self._handlers.clear()
        self._handlers[key] = handlers
        return handlers

    def handles(self, attributes: AdmissionAttributes) -> bool:
        """Return whether any plugin handles the request."""
        mutating, validating = self._handlers_for(attributes)
        return bool(mutating or validating)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """
        Call the mutating plugins; call them a second time if one of them requests it.

        @raise APIStatusError: A plugin rejected the request or failed.
        """
        handlers = self._handlers_for(attributes)[0]
        if not handlers:
            return
        reinvocation = attributes.reinvocation = ReinvocationContext()
        await self._run_handlers(handlers, attributes)
        if reinvocation.should_reinvoke:
            reinvocation.is_reinvoke = True
            await self._run_handlers(handlers, attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """
        Call the validating plugins.

        @raise APIStatusError: A plugin rejected the request or failed.
        """
        handlers = self._handlers_for(attributes)[1]
        if handlers:
            await self._run_handlers(handlers, attributes)

    async def _run_handlers(self, handlers: Iterable[_Handler], attributes: AdmissionAttributes) -> None:
        started_at = now = perf_counter()
        handler = None
        try:
            for handler in handlers:
                if handler.isolate is not None and attributes.object is not None:
                    await self._run_isolated(handler, handler.isolate, attributes.object, attributes)
                else:
                    try:
                        result = handler.call(attributes)
                        if result is not None:
                            result = run_until_blocked(result)
                            if result is not None:
                                check_result(
                                    await (
                                        result
                                        if handler.timeout is None
                                        else with_timeout(result, handler.timeout, self._clock())
                                    )
                                )
                    except (APIStatusError, CancelledError):
                        raise
                    except Exception as error:
                        self._failed(handler, error)
                # The end of one call is the start of the next, which saves a reading of the clock.
                before, now = now, perf_counter()
                seconds, durations = now - before, handler.admitted_seconds
                if seconds <= _SHORT:
                    durations.counts[0] += 1
                    durations.sum += seconds
                else:
                    durations.observe(seconds)
        except APIStatusError:
            assert handler is not None, "a plugin has rejected the request"
            before, now = now, perf_counter()
            handler.rejected_seconds.observe(now - before)
            self._phases[handler.phase, attributes.operation].rejected_seconds.observe(now - started_at)
            raise
        finally:
            add_latency(ADMISSION, perf_counter() - started_at)
        if handler is not None:
            self._phases[handler.phase, attributes.operation].admitted_seconds.observe(now - started_at)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of the chain and of its plugins."""
        phases = [
            ((_TYPES[phase], operation, rejected), seconds)
            for (phase, operation), one in self._phases.items()
            for rejected, seconds in (("false", one.admitted_seconds), ("true", one.rejected_seconds))
            if seconds.count
        ]
        name, text = (
            "apiserver_admission_step_admission_duration_seconds",
            "Duration of all plugins of a phase, in seconds.",
        )
        labels = ("type", "operation", "rejected")
        yield MetricSnapshot(name, "histogram", text, labels, phases)
        yield MetricSnapshot(f"{name}_summary", "summary", f"{text} Quantiles are of the last 500.", labels, phases)
        yield MetricSnapshot(
            "apiserver_admission_controller_admission_duration_seconds",
            "histogram",
            "Duration of each plugin, in seconds.",
            ("name", "type", "operation", "rejected"),
            [
                ((handler.plugin.name, _TYPES[handler.phase], operation, rejected), seconds)
                for handlers in (self._mutating, self._validating)
                for operation, operation_handlers in handlers.items()
                for handler in operation_handlers
                for rejected, seconds in (("false", handler.admitted_seconds), ("true", handler.rejected_seconds))
                if seconds.count
            ],
        )
        for plugin in self.plugins:
            if IMeasuredAdmission.providedBy(plugin):
                yield from plugin.collect()

    async def _run_isolated(
        self,
        handler: _Handler,
        isolate: Callable[[JSONObject], JSONObject],
        obj: JSONObject,
        attributes: AdmissionAttributes,
    ) -> None:
        """Call a plugin with a copy or frozen view of the object; take over its changes if it succeeds."""
        isolated = attributes.object = isolate(obj)
        try:
            result = handler.call(attributes)
            if result is not None:
                result = run_until_blocked(result)
                if result is not None:
                    check_result(
                        await (
                            result if handler.timeout is None else with_timeout(result, handler.timeout, self._clock())
                        )
                    )
        except (APIStatusError, CancelledError):
            raise
        except Exception as error:
            self._failed(handler, error)
        else:
            if handler.phase == _MUTATION:
                obj.clear()
                obj.update(isolated)
        finally:
            attributes.object = obj

    def _failed(self, handler: _Handler, error: Exception) -> None:
        """
        Log the failure of a plugin.

        @raise APIStatusError: The failure policy of the plugin is C{Fail} (500).
        """
        name = handler.plugin.name
        text = f'admission plugin "{name}" failed to complete {handler.phase}'
        if isinstance(error, TimedOut):
            text += f" in {handler.timeout:g}s"
        self._report_failure(text, error, "Ignore" if handler.ignore_failures else "Fail")
        if not handler.ignore_failures:
            raise APIStatusError.internal(text) from None

    def _report_failure(self, text: str, error: Exception, policy: str) -> None:
        """
        Log the failure of a plugin; called while C{error} is handled.

        @param text: The failure, for clients.
        @param error: The exception of the plugin, or L{TimedOut}.
        @param policy: The failure policy of the plugin.
        """
        if isinstance(error, TimedOut):
            self._log.error("{text}; the failure policy is {policy}", text=text, policy=policy)
        else:
            self._log.failure("{text}; the failure policy is {policy}", text=text, policy=policy)

    def _clock(self) -> IReactorTime:
        if self._reactor is None:
            from twisted.internet import reactor

            self._reactor = reactor
        return self._reactor


def handles_resource(plugin: IAdmissionPlugin, group: str, resource: str, subresource: str) -> bool:
    """
    Return whether a plugin handles a resource: it is listed in C{resources}, or the plugin has no such attribute.

    Entries are C{"pods"}, C{"pods/binding"}, C{"deployments.apps"}, C{"deployments.apps/scale"}; C{"pods/*"} is the
    resource with all its subresources.

    @param plugin: The plugin.
    @param group: The API group.
    @param resource: The plural name.
    @param subresource: The subresource; C{""} for the main resource.
    """
    resources: Sequence[str] | None = getattr(plugin, "resources", None)
    if resources is None:
        return True
    qualified = f"{resource}.{group}" if group else resource
    return (f"{qualified}/{subresource}" if subresource else qualified) in resources or f"{qualified}/*" in resources


def run_until_blocked(result: object) -> Awaitable[object] | None:
    """
    Run a coroutine synchronously up to its first wait.

    Most plugins never wait, so this avoids the cost of a Deferred.

    @param result: The result of a plugin's method: a coroutine, another awaitable, or L{None}.
    @return: An awaitable of the remaining coroutine; L{None} if it has finished.
    @raise TypeError: The plugin returned a value.
    """
    if not isinstance(result, Coroutine):
        if isinstance(result, Awaitable):
            return result
        check_result(result)
        return None
    try:
        awaited = result.send(None)
    except StopIteration as stop:
        check_result(stop.value)
        return None
    return _StartedCoroutine(result, awaited)


def check_result(result: object) -> None:
    """
    Check that a plugin returned nothing. A returned C{False} is no denial, and must not admit the request either.

    @raise TypeError: The plugin returned a value.
    """
    if result is not None:
        raise TypeError(f"the plugin returned {result!r} instead of None; it rejects a request with an APIStatusError")


class _StartedCoroutine:
    """
    An awaitable of a coroutine that runs already.

    @ivar _awaited: The object that the coroutine waits for.
    """

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], awaited: Any) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Any:
        awaited = self._awaited
        try:
            while True:
                try:
                    value = yield awaited
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as error:
                    awaited = self._coroutine.throw(error)
                else:
                    awaited = self._coroutine.send(value)
        except StopIteration as stop:
            return stop.value


def _copy(obj: JSONObject) -> JSONObject:
    copy: JSONObject = orjson.loads(orjson.dumps(obj))
    return copy
