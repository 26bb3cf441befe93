"""Tests for L{kubetwist.admission.chain}."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.admission.attributes import AdmissionAttributes
from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.admission.selection import ORDER, UnknownPlugins, build_chain
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission


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


@define
class Factory:
    """Makes one of them."""

    name: str
    default: bool = True

    def make(self, server: Any, configuration: Any) -> Mutating:
        """Make it."""
        return Mutating(self.name)


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


class BuildTests(SynchronousTestCase):
    """Tests for L{build_chain}."""

    def names(self, *factories: Any, enabled: tuple[str, ...] = (), disabled: tuple[str, ...] = ()) -> list[str]:
        """The plugins of a chain."""
        chain = build_chain(enabled, disabled, Nothing(), only=factories)
        return [plugin.name for plugin in chain.plugins]

    def test_order(self) -> None:
        """The order is the reference's, whatever order plugins are found or named in; others follow by name."""
        found = [Factory(name) for name in ("Zebra", "Priority", "Apple", "NamespaceLifecycle", "LimitRanger")]
        expected = ["NamespaceLifecycle", "LimitRanger", "Priority", "Apple", "Zebra"]
        self.assertEqual(self.names(*found), expected)
        self.assertEqual(self.names(*reversed(found), enabled=("Zebra", "Apple")), expected)
        self.assertEqual(len(set(ORDER)), len(ORDER))

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
        chain = build_chain((), (), Nothing())
        names = [plugin.name for plugin in chain.plugins]
        self.assertIn("NamespaceLifecycle", names)
        self.assertEqual(names, [name for name in ORDER if name in names])
        factory = AdmissionPluginFactory(
            "NamespaceLifecycle", "kubetwist.admission_plugins.namespacelifecycle:NamespaceLifecycle"
        )
        verifyObject(IAdmissionPluginFactory, factory)
        self.assertEqual(factory.make(Nothing(), None).name, "NamespaceLifecycle")
