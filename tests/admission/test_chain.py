"""Tests for L{kubetwist.admission.chain}."""

from __future__ import annotations

import contextlib
from typing import Any

from attrs import define, field

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.admission.attributes import AdmissionAttributes
from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.admission.selection import ORDER, UnknownPlugins, build_chain, installed
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission
from kubetwist.registry.admissioncontext import ServerAdmissionContext
from kubetwist.registry.stores import Stores

#: What of the reference's plugins is off by default: its own table says so.
OFF = frozenset(
    (
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "NodeRestriction",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodNodeSelector",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
        "AlwaysDeny",
    )
)


class Nothing:
    """A server that has nothing."""

    release = "1.36"

    def lookup(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """Nothing."""
        return None


def write(operation: str = "CREATE", obj: Any = None) -> AdmissionAttributes:
    """A write of a pod."""
    user = UserInfo("alice")
    return AdmissionAttributes(
        operation, "", "v1", "pods", "", "Pod", "default", "a", obj, None, user, False, Nothing()
    )


@define
class Writer:
    """Writes its name into objects, and notes when it was asked."""

    name: str
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    asked: list[str] = field(factory=list)

    def handles(self, operation: str) -> bool:
        """Some."""
        return operation in self.operations

    async def admit(self, attributes: Any) -> None:
        """Write."""
        attributes.object.setdefault("by", []).append(self.name)

    async def validate(self, attributes: Any) -> None:
        """Note."""
        self.asked.append(attributes.operation)


@implementer(IMutatingAdmission)
class Mutating(Writer):
    """Changes."""


@implementer(IValidatingAdmission)
class Validating(Writer):
    """Looks."""


@implementer(IAdmissionPluginFactory)
@define
class Factory:
    """Makes one of them."""

    name: str
    default: bool = True
    after: str = ""

    def make(self, server: Any, configuration: Any) -> Mutating:
        """Make it."""
        return Mutating(self.name)


@implementer(IValidatingAdmission)
class _Nameless:
    """A plugin without the attribute C{name}."""

    def handles(self, operation: str) -> bool:
        return True

    def validate(self, attributes: Any) -> None:
        return None


class ChainTests(SynchronousTestCase):
    """Tests for L{AdmissionChain}."""

    def test_phases(self) -> None:
        """Plugins that change come in their order; those that look are not asked to change, nor the other way round."""
        last = Validating("v")
        chain = AdmissionChain([Mutating("b"), last, Mutating("a")])
        verifyObject(IMutatingAdmission, chain.plugins[0])
        obj: dict[str, Any] = {}
        self.successResultOf(chain.admit(write(obj=obj)))
        self.assertEqual(obj, {"by": ["b", "a"]})
        self.successResultOf(chain.validate(write(obj=obj)))
        self.assertEqual((obj, last.asked), ({"by": ["b", "a"]}, ["CREATE"]))

    def test_operations(self) -> None:
        """A plugin is asked only about the operations that it has to do with."""
        plugin = Validating("v", ("DELETE",))
        chain = AdmissionChain([plugin])
        for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
            self.successResultOf(chain.validate(write(operation)))
        self.assertEqual(plugin.asked, ["DELETE"])

    def test_refusal(self) -> None:
        """The first plugin that refuses ends the matter."""
        refusal = APIStatusError.bad_request("no")

        class Refuses(Validating):
            async def validate(self, attributes: Any) -> None:
                raise refusal

        last = Validating("last")
        chain = AdmissionChain([Refuses("first"), last])
        failure = self.failureResultOf(chain.validate(write()), APIStatusError)
        self.assertIs(failure.value, refusal)
        self.assertEqual(last.asked, [])

    def test_plain(self) -> None:
        """A plugin need not be asynchronous."""

        class Plain(Mutating):
            def admit(self, attributes: Any) -> None:
                attributes.object["seen"] = True

        obj: dict[str, Any] = {}
        self.successResultOf(AdmissionChain([Plain("p")]).admit(write(obj=obj)))
        self.assertEqual(obj, {"seen": True})

    def test_resources(self) -> None:
        """A plugin that says which resources it is about is asked about no others."""

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
            plugin.asked.clear()
            self.assertEqual(chain.concern(attributes), expected)
            self.successResultOf(chain.validate(attributes))
            self.assertEqual(bool(plugin.asked), expected, (group, resource, subresource))

    def test_reinvocation(self) -> None:
        """A plugin can have all of them asked once more, and knows when that is."""

        class Again(Mutating):
            async def admit(self, attributes: Any) -> None:
                attributes.object.setdefault("by", []).append((self.name, attributes.reinvocation.second))
                attributes.reinvocation.request()

        obj: dict[str, Any] = {}
        self.successResultOf(AdmissionChain([Again("a"), Again("b")]).admit(write(obj=obj)))
        self.assertEqual(obj["by"], [("a", False), ("b", False), ("a", True), ("b", True)])

    def test_bug(self) -> None:
        """What a plugin raises by mistake is logged with its name; the client learns no more than that it failed."""

        class Broken(Mutating, Validating):
            async def admit(self, attributes: Any) -> None:
                raise KeyError("a secret")

            validate = admit

        chain = AdmissionChain([Broken("Rusty")])
        for phase, asked in (("mutation", chain.admit), ("validation", chain.validate)):
            error = self.failureResultOf(asked(write(obj={})), APIStatusError).value
            text = f'Internal error occurred: admission plugin "Rusty" failed to complete {phase}'
            self.assertEqual((error.code, error.message), (500, text))
            self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_ignored_bug(self) -> None:
        """Where the plugin's policy is to be ignored then, the request passes, with the object as it was before."""

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
        """A plugin of others that validates can not change what it is shown."""

        class Meddler(Validating):
            async def validate(self, attributes: Any) -> None:
                with contextlib.suppress(TypeError):
                    attributes.object["list"].append(2)
                self.asked.append(attributes.object["list"])

        obj: dict[str, Any] = {"list": [1]}
        plugin = Meddler("m")
        attributes = write(obj=obj)
        self.successResultOf(AdmissionChain([plugin]).validate(attributes))
        self.assertEqual((obj, plugin.asked), ({"list": [1]}, [[1]]))
        self.assertIs(attributes.object, obj)

    def test_late(self) -> None:
        """A plugin that is ignored since it took too long changes nothing any more."""
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

    def test_hang(self) -> None:
        """A plugin that takes too long is not waited for, and told so, whatever it makes of that."""
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

    def test_waits(self) -> None:
        """A plugin that waits and is done in time has its say."""
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

    def test_gone(self) -> None:
        """When the client has gone, the plugin is told so, and nobody else is asked."""
        last = Validating("last")
        told: list[type[BaseException]] = []

        class Waiting(Validating):
            async def validate(self, attributes: Any) -> None:
                try:
                    await Deferred()
                except BaseException as error:
                    told.append(type(error))
                    raise

        clock = Clock()
        answer = Deferred.fromCoroutine(AdmissionChain([Waiting("w"), last], clock).validate(write()))
        answer.cancel()
        self.failureResultOf(answer, CancelledError)
        self.assertEqual((told, last.asked, clock.getDelayedCalls()), ([CancelledError], [], []))


class BuildTests(SynchronousTestCase):
    """Tests for L{build_chain}."""

    def names(self, *factories: Any, enabled: tuple[str, ...] = (), disabled: tuple[str, ...] = ()) -> list[str]:
        """The plugins of a chain."""
        chain = build_chain(enabled, disabled, Nothing(), only=factories)
        return [plugin.name for plugin in chain.plugins]

    def test_order(self) -> None:
        """The order is the reference's, whatever order plugins are found or named in; others come before webhooks."""
        found = [Factory(name) for name in ("Zebra", "ResourceQuota", "Apple", "NamespaceLifecycle", "LimitRanger")]
        expected = ["NamespaceLifecycle", "LimitRanger", "Apple", "Zebra", "ResourceQuota"]
        self.assertEqual(self.names(*found), expected)
        self.assertEqual(self.names(*reversed(found), enabled=("Zebra", "Apple")), expected)
        self.assertEqual(len(set(ORDER)), len(ORDER))

    def test_after(self) -> None:
        """A plugin can say whom it comes after: a built-in one, which need not be there, or another."""
        found = [Factory("B", after="A"), Factory("A", after="LimitRanger"), Factory("C"), Factory("Priority")]
        self.assertEqual(self.names(*found), ["A", "B", "Priority", "C"])
        for lost in (Factory("X", after="Y"), Factory("X", after="X")):
            with self.assertRaisesRegex(UnknownPlugins, "^admission plugin"):
                self.names(lost)

    def test_reference(self) -> None:
        """The built-in plugins have their defaults as in the reference."""
        for name, factory in installed().items():
            if name in ORDER:
                self.assertEqual(factory.default, name not in OFF, name)

    def test_broken(self) -> None:
        """A plugin that can not be made stops the server with one line."""

        class Bad(Factory):
            def make(self, server: Any, configuration: Any) -> Mutating:
                raise ValueError(f"no\n  {configuration}")

        class Liar(Factory):
            def make(self, server: Any, configuration: Any) -> Mutating:
                return Mutating("Other")

        class Incomplete(Factory):
            def make(self, server: Any, configuration: Any) -> Any:
                return _Nameless()

        missing = AdmissionPluginFactory("Missing", "kubetwist.nowhere:Missing")
        for factory, text in (
            (Bad("Bad"), 'couldn\'t init admission plugin "Bad": no {}'),
            (Liar("Liar"), 'couldn\'t init admission plugin "Liar": it calls itself Other'),
            (
                Incomplete("Incomplete"),
                'couldn\'t init admission plugin "Incomplete": _Nameless lacks the attribute name of'
                " IValidatingAdmission (As in --enable-admission-plugins.)",
            ),
            (missing, "couldn't init admission plugin \"Missing\": No module named 'kubetwist.nowhere'"),
        ):
            with self.assertRaises(UnknownPlugins) as caught:
                build_chain((), (), Nothing(), {"Bad": {}}, only=[factory])
            self.assertEqual(str(caught.exception), text)

    def test_overlap(self) -> None:
        """A plugin can not be switched on and off."""
        with self.assertRaisesRegex(UnknownPlugins, r"\[On\] in enable-admission-plugins and disable-.* overlapped"):
            self.names(Factory("On"), enabled=("On",), disabled=("On",))

    def test_switches(self) -> None:
        """What is on by default can be switched off, and the rest on."""
        found = [Factory("On"), Factory("Off", default=False)]
        self.assertEqual(self.names(*found), ["On"])
        self.assertEqual(self.names(*found, enabled=("Off",)), ["Off", "On"])
        self.assertEqual(self.names(*found, disabled=("On",)), [])

    def test_unknown(self) -> None:
        """A name that no plugin has stops the server; a plugin of the reference that is not here may be off."""
        for switches in ({"enabled": ("Nope",)}, {"disabled": ("Nope",)}, {"enabled": ("PodSecurity",)}):
            with self.assertRaises(UnknownPlugins):
                self.names(Factory("On"), **switches)
        self.assertEqual(self.names(Factory("On"), disabled=("PodSecurity",)), ["On"])

    def test_twice(self) -> None:
        """Two plugins of one name stop the server."""
        with self.assertRaisesRegex(UnknownPlugins, "two admission plugins are called On"):
            self.names(Factory("On"), Factory("On"))

    def test_built_in(self) -> None:
        """The built-in plugins are found as anybody's would be, and are what their factories say."""
        clock = Clock()
        context = ServerAdmissionContext(Stores(), clock)
        every = [name for name in installed() if name in ORDER and name not in ("EventRateLimit", "ImagePolicyWebhook")]
        chain = build_chain(every, (), context)
        names = [plugin.name for plugin in chain.plugins if plugin.name in ORDER]
        self.assertEqual(names, [name for name in ORDER if name in every])
        self.assertEqual(set(ORDER) - set(installed()), set())
        for plugin in chain.plugins:
            provided = [one for one in (IMutatingAdmission, IValidatingAdmission) if one.providedBy(plugin)]
            self.assertTrue(provided, plugin.name)
            for one in provided:
                verifyObject(one, plugin)
        factory = AdmissionPluginFactory(
            "NamespaceLifecycle", "kubetwist.admission_plugins.namespacelifecycle:NamespaceLifecycle"
        )
        verifyObject(IAdmissionPluginFactory, factory)
        self.assertEqual(factory.make(Nothing(), None).name, "NamespaceLifecycle")
