"""The admission chain: which plugins concern a write, and in which order and how they are asked."""

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
    Reinvocation,
)
from ..api.errors import APIStatusError
from ..api.frozen import frozen
from ..api.latency import ADMISSION, Spending
from ..api.resource import JSONObject
from ..interfaces import IMeasuredAdmission, IMutatingAdmission, IValidatingAdmission
from ..metrics.registry import Distribution, Reading
from ..metrics.summaries import Summary
from ._timeout import (
    Hung,
    within,
)

if TYPE_CHECKING:
    from ..interfaces import IAdmissionPlugin

#: Seconds that a plugin may keep a request waiting, unless it says otherwise.
TIMEOUT: Final = 10.0
#: Resources that are remembered with the plugins that concern them; definitions come and go.
_REMEMBERED: Final = 4096

#: Where plugins are that are known to look and not to touch.
_OURS: Final = "kubetwist."
_MUTATION: Final = "mutation"

#: Bounds of the seconds that plugins take.
_SECONDS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
#: What metrics call the phases.
_TYPES: Final = {_MUTATION: "admit", "validation": "validate"}

_Ask = Callable[[AdmissionAttributes], Any]


@define(eq=False)
class _Step:
    """
    One plugin in one phase.

    @ivar ask: Its C{admit} or C{validate}.
    @ivar timeout: Seconds that it may take; L{None} for a plugin that keeps its own time.
    @ivar ignores: Whether a failure of the plugin itself lets the request through.
    @ivar guard: Makes what the plugin is shown instead of the object itself; L{None} for a plugin that is shown that.
    @ivar took: Seconds, for one operation.
    @ivar refused: Seconds until it refused.
    """

    plugin: Any
    ask: _Ask
    phase: str
    timeout: float | None
    ignores: bool
    guard: Callable[[JSONObject], JSONObject] | None
    took: Distribution = field(factory=lambda: Distribution(_SECONDS), repr=False)
    refused: Distribution = field(factory=lambda: Distribution(_SECONDS), repr=False)


class _Phase:
    """How long all plugins of one phase took for one operation, where none refused, and where one did."""

    __slots__ = ("refused", "took")

    def __init__(self) -> None:
        self.took = Summary(_SECONDS)
        self.refused = Summary(_SECONDS)


def _guard(plugin: IAdmissionPlugin, mutates: bool, ignores: bool) -> Callable[[JSONObject], JSONObject] | None:
    """
    What keeps a plugin from doing what it may not.

    One whose failure does not count works on a copy, so that it leaves nothing behind when it fails. And a plugin of
    others that validates sees something that it can not change: nobody would look at it again.
    """
    if mutates:
        return _copied if ignores else None
    return None if type(plugin).__module__.startswith(_OURS) else frozen


class AdmissionChain:
    """
    The plugins that are on.

    Plugins are remembered by operation and resource, so that one that has nothing to do with a write costs nothing.
    A plugin may be plain or asynchronous. What it raises, if that is no L{APIStatusError}, is logged with its name; the
    client is told that it failed, and no more.
    """

    _log = Logger()

    def __init__(self, plugins: Sequence[IAdmissionPlugin] = (), reactor: IReactorTime | None = None) -> None:
        """
        @param reactor: For time limits; L{None} for the global one.
        """
        self.plugins = list(plugins)
        self._reactor = reactor
        self._mutating = self._by_operation(IMutatingAdmission, _MUTATION)
        self._validating = self._by_operation(IValidatingAdmission, "validation")
        self._phases = {(phase, operation): _Phase() for phase in _TYPES for operation in OPERATIONS}
        self._steps: dict[tuple[str, str, str, str], tuple[tuple[_Step, ...], tuple[_Step, ...]]] = {}

    def _by_operation(self, interface: Any, phase: str) -> dict[str, list[_Step]]:
        method = "admit" if interface is IMutatingAdmission else "validate"
        found: dict[str, list[_Step]] = {operation: [] for operation in OPERATIONS}
        for plugin in self.plugins:
            if not interface.providedBy(plugin):
                continue
            ignores = getattr(plugin, "failure_policy", "Fail") == "Ignore"
            for operation in OPERATIONS:
                if plugin.handles(operation):
                    step = _Step(
                        plugin,
                        self._caller(getattr(plugin, method), plugin.name, phase, operation),
                        phase,
                        getattr(plugin, "timeout", TIMEOUT),
                        ignores,
                        _guard(plugin, interface is IMutatingAdmission, ignores),
                    )
                    found[operation].append(step)
        return found

    def _caller(self, ask: _Ask, name: str, phase: str, operation: str) -> _Ask:
        """
        Return what is called instead of a method of a plugin; a hook for subclasses.

        @param ask: The method.
        @param name: The name of the plugin.
        """
        return ask

    def _steps_for(self, attributes: AdmissionAttributes) -> tuple[tuple[_Step, ...], tuple[_Step, ...]]:
        key = (attributes.operation, attributes.group, attributes.resource, attributes.subresource)
        try:
            return self._steps[key]
        except KeyError:
            pass
        operation, group, resource, subresource = key
        steps = (
            tuple(step for step in self._mutating[operation] if concerns(step.plugin, group, resource, subresource)),
            tuple(step for step in self._validating[operation] if concerns(step.plugin, group, resource, subresource)),
        )
        if len(self._steps) >= _REMEMBERED:
            self._steps.clear()
        self._steps[key] = steps
        return steps

    def concern(self, attributes: AdmissionAttributes) -> bool:
        """Whether any plugin has to do with this at all."""
        mutating, validating = self._steps_for(attributes)
        return bool(mutating or validating)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """
        Let the mutating plugins change the object; a second time, if one of them asks for it.

        @raise APIStatusError: One refuses, or fails.
        """
        steps = self._steps_for(attributes)[0]
        if not steps:
            return
        reinvocation = attributes.reinvocation = Reinvocation()
        with Spending(ADMISSION):
            await self._ask_all(steps, attributes)
            if reinvocation.wanted:
                reinvocation.second = True
                await self._ask_all(steps, attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """
        Let the validating plugins refuse the object.

        @raise APIStatusError: One refuses, or fails.
        """
        steps = self._steps_for(attributes)[1]
        if steps:
            with Spending(ADMISSION):
                await self._ask_all(steps, attributes)

    async def _ask_all(self, steps: Iterable[_Step], attributes: AdmissionAttributes) -> None:
        began = now = perf_counter()
        step = None
        try:
            for step in steps:
                if step.guard is not None and attributes.object is not None:
                    await self._ask_guarded(step, step.guard, attributes.object, attributes)
                else:
                    try:
                        answer = step.ask(attributes)
                        if answer is not None:
                            answer = begin(answer)
                            if answer is not None:
                                await (answer if step.timeout is None else within(answer, step.timeout, self._clock()))
                    except (APIStatusError, CancelledError):
                        raise
                    except Exception as error:
                        self._failed(step, error)
                # The end of one is the beginning of the next.
                before, now = now, perf_counter()
                step.took.observe(now - before)
        except APIStatusError:
            assert step is not None, "a plugin has refused"
            before, now = now, perf_counter()
            step.refused.observe(now - before)
            self._phases[step.phase, attributes.operation].refused.observe(now - began)
            raise
        if step is not None:
            self._phases[step.phase, attributes.operation].took.observe(now - began)

    def readings(self) -> Iterator[Reading]:
        """What the plugins took, for those who look at the whole server."""
        phases = [
            ((_TYPES[phase], operation, rejected), seconds)
            for (phase, operation), one in self._phases.items()
            for rejected, seconds in (("false", one.took), ("true", one.refused))
            if seconds.count
        ]
        name, text = "apiserver_admission_step_admission_duration_seconds", "How long all plugins of a phase took."
        labels = ("type", "operation", "rejected")
        yield Reading(name, "histogram", text, labels, phases)
        yield Reading(f"{name}_summary", "summary", f"{text} Quantiles are of the last 500.", labels, phases)
        yield Reading(
            "apiserver_admission_controller_admission_duration_seconds",
            "histogram",
            "How long each plugin took.",
            ("name", "type", "operation", "rejected"),
            [
                ((step.plugin.name, _TYPES[step.phase], operation, rejected), seconds)
                for steps in (self._mutating, self._validating)
                for operation, found in steps.items()
                for step in found
                for rejected, seconds in (("false", step.took), ("true", step.refused))
                if seconds.count
            ],
        )
        for plugin in self.plugins:
            if IMeasuredAdmission.providedBy(plugin):
                yield from plugin.readings()

    async def _ask_guarded(
        self, step: _Step, guard: Callable[[JSONObject], JSONObject], obj: JSONObject, attributes: AdmissionAttributes
    ) -> None:
        """Ask a plugin that is shown something else than the object; what it changes counts if it succeeds."""
        shown = attributes.object = guard(obj)
        try:
            answer = step.ask(attributes)
            if answer is not None:
                answer = begin(answer)
                if answer is not None:
                    await (answer if step.timeout is None else within(answer, step.timeout, self._clock()))
        except (APIStatusError, CancelledError):
            raise
        except Exception as error:
            self._failed(step, error)
        else:
            if step.phase == _MUTATION:
                obj.clear()
                obj.update(shown)
        finally:
            attributes.object = obj

    def _failed(self, step: _Step, error: Exception) -> None:
        """
        Report a plugin that does not do its work.

        @raise APIStatusError: The request fails with it (500).
        """
        name = step.plugin.name
        text = f'admission plugin "{name}" failed to complete {step.phase}'
        if isinstance(error, Hung):
            text += f" in {step.timeout:g}s"
            self._log.error("{text}; the failure policy is {policy}", text=text, policy=_policy(step))
        else:
            self._log.failure("{text}; the failure policy is {policy}", text=text, policy=_policy(step))
        if not step.ignores:
            raise APIStatusError.internal(text) from None

    def _clock(self) -> IReactorTime:
        if self._reactor is None:
            from twisted.internet import reactor

            self._reactor = reactor
        return self._reactor


def _policy(step: _Step) -> str:
    return "Ignore" if step.ignores else "Fail"


def concerns(plugin: IAdmissionPlugin, group: str, resource: str, subresource: str) -> bool:
    """
    Whether a plugin has to do with a resource: it is among its C{resources}, or it does not say any.

    They are written C{"pods"}, C{"pods/binding"}, C{"deployments.apps"}, C{"deployments.apps/scale"}; C{"pods/*"} is
    the resource with all its subresources.
    """
    named: Sequence[str] | None = getattr(plugin, "resources", None)
    if named is None:
        return True
    full = f"{resource}.{group}" if group else resource
    return (f"{full}/{subresource}" if subresource else full) in named or f"{full}/*" in named


def begin(answer: object) -> Awaitable[object] | None:
    """
    Run a coroutine until it has to wait for something.

    Most plugins never wait, and this spares them what it costs to be able to.

    @return: What is left to wait for; L{None} if nothing is.
    """
    if not isinstance(answer, Coroutine):
        return answer if isinstance(answer, Awaitable) else None
    try:
        waits = answer.send(None)
    except StopIteration:
        return None
    return _Begun(answer, waits)


class _Begun:
    """The rest of a coroutine that waits for C{waits}."""

    __slots__ = ("_coroutine", "_waits")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits: Any) -> None:
        self._coroutine = coroutine
        self._waits = waits

    def __await__(self) -> Any:
        waits = self._waits
        try:
            while True:
                try:
                    value = yield waits
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as error:
                    waits = self._coroutine.throw(error)
                else:
                    waits = self._coroutine.send(value)
        except StopIteration as stop:
            return stop.value


def _copied(obj: JSONObject) -> JSONObject:
    copy: JSONObject = orjson.loads(orjson.dumps(obj))
    return copy
