"""Tests for L{kubetwist.admission.chain}."""

from __future__ import annotations

import contextlib
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.admission.chain import AdmissionChain
from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission.plugins import Mutating, Nothing, Writer


def write(operation: str = "CREATE", obj: Any = None) -> AdmissionAttributes:
    """Return the attributes of a write of a pod."""
    user = UserInfo("alice")
    return AdmissionAttributes(
        operation, "", "v1", "pods", "", "Pod", "default", "a", obj, None, user, False, Nothing()
    )


@implementer(IValidatingAdmission)
class Validating(Writer):
    """A validating plugin."""


class ChainTests(SynchronousTestCase):
    """Tests for L{AdmissionChain}."""

    def test_phases(self) -> None:
        """Mutating plugins are called in their order, then validating ones."""
        last = Validating("v")
        chain = AdmissionChain([Mutating("b"), last, Mutating("a")])
        verifyObject(IMutatingAdmission, chain.plugins[0])
        obj: dict[str, Any] = {}
        self.successResultOf(chain.admit(write(obj=obj)))
        self.assertEqual(obj, {"by": ["b", "a"]})
        self.successResultOf(chain.validate(write(obj=obj)))
        self.assertEqual((obj, last.calls), ({"by": ["b", "a"]}, ["CREATE"]))

    def test_operations(self) -> None:
        """A plugin is called for its operations only."""
        plugin = Validating("v", ("DELETE",))
        chain = AdmissionChain([plugin])
        for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
            self.successResultOf(chain.validate(write(operation)))
        self.assertEqual(plugin.calls, ["DELETE"])

    def test_rejection(self) -> None:
        """The first plugin that rejects the request ends the chain."""
        rejection = APIStatusError.bad_request("no")

        class Refuses(Validating):
            async def validate(self, attributes: Any) -> None:
                raise rejection

        last = Validating("last")
        chain = AdmissionChain([Refuses("first"), last])
        failure = self.failureResultOf(chain.validate(write()), APIStatusError)
        self.assertIs(failure.value, rejection)
        self.assertEqual(last.calls, [])

    def test_synchronous(self) -> None:
        """A plugin can be synchronous."""

        class Plain(Mutating):
            def admit(self, attributes: Any) -> None:
                attributes.object["seen"] = True

        obj: dict[str, Any] = {}
        self.successResultOf(AdmissionChain([Plain("p")]).admit(write(obj=obj)))
        self.assertEqual(obj, {"seen": True})

    def test_resources(self) -> None:
        """A plugin with C{resources} is called for these only."""

        class Some(Validating):
            resources = ("pods", "deployments.apps", "nodes/*", "deployments.apps/scale")

        plugin = Some("s")
        chain = AdmissionChain([plugin])
        for group, resource, subresource, expected in (
            ("", "pods", "", True),
            ("", "pods", "status", False),
            ("apps", "deployments", "", True),
            ("", "deployments", "", False),
            ("apps", "deployments", "scale", True),
            ("", "nodes", "", True),
            ("", "nodes", "status", True),
        ):
            attributes = write()
            attributes.group, attributes.resource, attributes.subresource = group, resource, subresource
            plugin.calls.clear()
            self.assertEqual(chain.handles(attributes), expected)
            self.successResultOf(chain.validate(attributes))
            self.assertEqual(bool(plugin.calls), expected, (group, resource, subresource))

    def test_reinvocation(self) -> None:
        """A plugin can request a second round, in which is_reinvoke is true."""

        class Again(Mutating):
            async def admit(self, attributes: Any) -> None:
                attributes.object.setdefault("by", []).append((self.name, attributes.reinvocation.is_reinvoke))
                attributes.reinvocation.request_reinvocation()

        obj: dict[str, Any] = {}
        self.successResultOf(AdmissionChain([Again("a"), Again("b")]).admit(write(obj=obj)))
        self.assertEqual(obj["by"], [("a", False), ("b", False), ("a", True), ("b", True)])

    def test_exception(self) -> None:
        """An unexpected exception is logged with the plugin's name; the client gets an error without details."""

        class Broken(Mutating, Validating):
            async def admit(self, attributes: Any) -> None:
                raise KeyError("a secret")

            validate = admit

        chain = AdmissionChain([Broken("Rusty")])
        for phase, calls in (("mutation", chain.admit), ("validation", chain.validate)):
            error = self.failureResultOf(calls(write(obj={})), APIStatusError).value
            text = f'Internal error occurred: admission plugin "Rusty" failed to complete {phase}'
            self.assertEqual((error.code, error.message), (500, text))
            self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_results(self) -> None:
        """A plugin that returns a value has failed, also if it does so later: False must not admit the request."""
        waiting: Deferred[None] = Deferred()

        class Wrong(Validating):
            def validate(self, attributes: Any) -> Any:
                return results.pop()

        async def later() -> bool:
            await waiting
            return False

        async def now() -> bool:
            return False

        results: list[Any] = [False, now(), later(), succeed(False)]
        chain = AdmissionChain([Wrong("Rusty")])
        pending = [Deferred.fromCoroutine(chain.validate(write(obj={}))) for _ in range(4)]
        waiting.callback(None)
        for validated in pending:
            self.assertEqual(self.failureResultOf(validated, APIStatusError).value.code, 500)
        self.assertEqual(len(self.flushLoggedErrors(TypeError)), 4)

    def test_ignored_exception(self) -> None:
        """With failure policy Ignore the request continues with the object as it was before the call."""

        class Broken(Mutating):
            failure_policy = "Ignore"

            async def admit(self, attributes: Any) -> None:
                attributes.object["half"] = True
                attributes.object["list"].append(2)
                raise KeyError

        obj: dict[str, Any] = {"list": [1]}
        self.successResultOf(AdmissionChain([Broken("Rusty"), Mutating("next")]).admit(write(obj=obj)))
        self.assertEqual(obj, {"list": [1], "by": ["next"]})
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_validation_changes_nothing(self) -> None:
        """A validating third-party plugin cannot change the object."""

        class RacingBackend(Validating):
            async def validate(self, attributes: Any) -> None:
                with contextlib.suppress(TypeError):
                    attributes.object["list"].append(2)
                self.calls.append(attributes.object["list"])

        obj: dict[str, Any] = {"list": [1]}
        plugin = RacingBackend("m")
        attributes = write(obj=obj)
        self.successResultOf(AdmissionChain([plugin]).validate(attributes))
        self.assertEqual((obj, plugin.calls), ({"list": [1]}, [[1]]))
        self.assertIs(attributes.object, obj)

    def test_ignored_timeout(self) -> None:
        """A plugin whose timeout is ignored cannot change the object afterwards."""
        waited: Deferred[None] = Deferred(lambda _: None)

        class Late(Mutating):
            failure_policy = "Ignore"
            timeout = 1.0

            async def admit(self, attributes: Any) -> None:
                obj = attributes.object
                obj["half"] = True
                with contextlib.suppress(CancelledError):
                    await waited
                obj["whole"] = True

        clock = Clock()
        obj: dict[str, Any] = {}
        answer = Deferred.fromCoroutine(AdmissionChain([Late("l"), Mutating("next")], clock).admit(write(obj=obj)))
        clock.advance(1)
        self.successResultOf(answer)
        self.assertEqual(obj, {"by": ["next"]})

    def test_timeout(self) -> None:
        """A plugin that exceeds its timeout is cancelled and not waited for, even if it ignores the cancellation."""
        cancelled: list[bool] = []

        class Slow(Validating):
            timeout = 3.0

            async def validate(self, attributes: Any) -> None:
                while True:
                    try:
                        await Deferred()
                    except CancelledError:
                        cancelled.append(True)

        clock = Clock()
        chain = AdmissionChain([Slow("Snail")], clock)
        answer = Deferred.fromCoroutine(chain.validate(write()))
        clock.advance(2.9)
        self.assertNoResult(answer)
        clock.advance(0.1)
        error = self.failureResultOf(answer, APIStatusError).value
        text = 'Internal error occurred: admission plugin "Snail" failed to complete validation in 3s'
        self.assertEqual((error.code, error.message, cancelled), (500, text, [True]))
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_asynchronous(self) -> None:
        """A plugin that finishes within its timeout takes effect."""
        waited: Deferred[str] = Deferred()

        class Patient(Mutating):
            async def admit(self, attributes: Any) -> None:
                attributes.object["said"] = await waited
                attributes.object["more"] = await succeed("two")

        clock = Clock()
        obj: dict[str, Any] = {}
        answer = Deferred.fromCoroutine(AdmissionChain([Patient("p")], clock).admit(write(obj=obj)))
        self.assertNoResult(answer)
        waited.callback("one")
        self.successResultOf(answer)
        self.assertEqual((obj, clock.getDelayedCalls()), ({"said": "one", "more": "two"}, []))

    def test_cancelled(self) -> None:
        """When the request is cancelled the current plugin is cancelled, and no further one is called."""
        last = Validating("last")
        reported: list[type[BaseException]] = []

        class Waiting(Validating):
            async def validate(self, attributes: Any) -> None:
                try:
                    await Deferred()
                except BaseException as error:
                    reported.append(type(error))
                    raise

        clock = Clock()
        answer = Deferred.fromCoroutine(AdmissionChain([Waiting("w"), last], clock).validate(write()))
        answer.cancel()
        self.failureResultOf(answer, CancelledError)
        self.assertEqual((reported, last.calls, clock.getDelayedCalls()), ([CancelledError], [], []))
