"""Tests for L{kubetwist.admission.plugins}."""

from __future__ import annotations

from typing import Any

from attrs import define

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.admission.plugins import (
    ALL_ORDERED_PLUGINS,
    PluginInitError,
    build_chain,
    installed,
)
from kubetwist.api.featuregates import FeatureGates
from kubetwist.interfaces import IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission
from kubetwist.registry.admissioncontext import ServerAdmissionContext
from kubetwist.registry.stores import Stores
from kubetwist.server.errors import StartError
from kubetwist.testing.trial import KubeAPIMixin
from tests.admission.plugins import Mutating, Nothing

#: The plugins of the reference that are disabled by default, from its table.
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


@implementer(IAdmissionPluginFactory)
@define
class Factory:
    """A factory of one plugin."""

    name: str
    default: bool = True
    after: str = ""

    def make(self, server: Any, configuration: Any) -> Mutating:
        """Return the plugin."""
        return Mutating(self.name)


@implementer(IValidatingAdmission)
class _Nameless:
    """A plugin without the attribute C{name}."""

    def handles(self, operation: str) -> bool:
        return True

    def validate(self, attributes: Any) -> None:
        return None


class BuildTests(SynchronousTestCase):
    """Tests for L{build_chain}."""

    def names(self, *factories: Any, enabled: tuple[str, ...] = (), disabled: tuple[str, ...] = ()) -> list[str]:
        """Return the names of the plugins of a chain."""
        chain = build_chain(enabled, disabled, Nothing(), only=factories)
        return [plugin.name for plugin in chain.plugins]

    def test_order(self) -> None:
        """
        The order is the reference's, independent of the order of discovery; third-party plugins come before policies.
        """
        result = [Factory(name) for name in ("Zebra", "ResourceQuota", "Apple", "NamespaceLifecycle", "LimitRanger")]
        expected = ["NamespaceLifecycle", "LimitRanger", "Apple", "Zebra", "ResourceQuota"]
        self.assertEqual(self.names(*result), expected)
        self.assertEqual(self.names(*reversed(result), enabled=("Zebra", "Apple")), expected)
        self.assertEqual(len(set(ALL_ORDERED_PLUGINS)), len(ALL_ORDERED_PLUGINS))

    def test_after(self) -> None:
        """A plugin can follow another one: a built-in plugin, which may be disabled, or a third-party one."""
        result = [Factory("B", after="A"), Factory("A", after="LimitRanger"), Factory("C"), Factory("Priority")]
        self.assertEqual(self.names(*result), ["A", "B", "Priority", "C"])
        for lost in (Factory("X", after="Y"), Factory("X", after="X")):
            with self.assertRaisesRegex(PluginInitError, "^admission plugin"):
                self.names(lost)

    def test_reference(self) -> None:
        """The built-in plugins have the defaults of the reference."""
        for name, factory in installed().items():
            if name in ALL_ORDERED_PLUGINS:
                self.assertEqual(factory.default, name not in OFF, name)

    def test_broken(self) -> None:
        """A plugin that cannot be created stops the server with one line."""

        class Bad(Factory):
            def make(self, server: Any, configuration: Any) -> Mutating:
                raise ValueError(f"no\n  {configuration}")

        class Misnamed(Factory):
            def make(self, server: Any, configuration: Any) -> Mutating:
                return Mutating("Other")

        class Incomplete(Factory):
            def make(self, server: Any, configuration: Any) -> Any:
                return _Nameless()

        missing = AdmissionPluginFactory("Missing", "kubetwist.nowhere:Missing")
        for factory, text in (
            (Bad("Bad"), 'couldn\'t init admission plugin "Bad": no {}'),
            (Misnamed("Liar"), 'couldn\'t init admission plugin "Liar": its name is Other'),
            (
                Incomplete("Incomplete"),
                'couldn\'t init admission plugin "Incomplete": _Nameless lacks the attribute name of'
                " IValidatingAdmission (The name in --enable-admission-plugins.)",
            ),
            (missing, "couldn't init admission plugin \"Missing\": No module named 'kubetwist.nowhere'"),
        ):
            with self.assertRaises(PluginInitError) as caught:
                build_chain((), (), Nothing(), {"Bad": {}}, only=[factory])
            self.assertEqual(str(caught.exception), text)

    def test_overlap(self) -> None:
        """A plugin cannot be enabled and disabled."""
        with self.assertRaisesRegex(PluginInitError, r"\[On\] in enable-admission-plugins and disable-.* overlapped"):
            self.names(Factory("On"), enabled=("On",), disabled=("On",))

    def test_flags(self) -> None:
        """Default plugins can be disabled, and other plugins enabled."""
        result = [Factory("On"), Factory("Off", default=False)]
        self.assertEqual(self.names(*result), ["On"])
        self.assertEqual(self.names(*result, enabled=("Off",)), ["Off", "On"])
        self.assertEqual(self.names(*result, disabled=("On",)), [])

    def test_unknown(self) -> None:
        """An unknown name stops the server; an unavailable plugin of the reference can be disabled."""
        for switches in ({"enabled": ("Nope",)}, {"disabled": ("Nope",)}, {"enabled": ("PodSecurity",)}):
            with self.assertRaises(PluginInitError):
                self.names(Factory("On"), **switches)
        self.assertEqual(self.names(Factory("On"), disabled=("PodSecurity",)), ["On"])

    def test_twice(self) -> None:
        """Two plugins with the same name stop the server."""
        with self.assertRaisesRegex(PluginInitError, "two admission plugins are called On"):
            self.names(Factory("On"), Factory("On"))

    def test_built_in(self) -> None:
        """The built-in plugins are discovered like third-party ones and match their factories."""
        clock = Clock()
        context = ServerAdmissionContext(Stores(), clock)
        every = [
            name
            for name in installed()
            if name in ALL_ORDERED_PLUGINS and name not in ("EventRateLimit", "ImagePolicyWebhook")
        ]
        chain = build_chain(every, (), context)
        names = [plugin.name for plugin in chain.plugins if plugin.name in ALL_ORDERED_PLUGINS]
        self.assertEqual(names, [name for name in ALL_ORDERED_PLUGINS if name in every])
        self.assertEqual(set(ALL_ORDERED_PLUGINS) - set(installed()), set())
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

    def test_releases(self) -> None:
        """A plugin is unknown in releases that do not have it."""
        context = ServerAdmissionContext(Stores(), Clock())

        def built(release: tuple[int, int]) -> set[str]:
            return {plugin.name for plugin in build_chain((), (), context, features=FeatureGates(release)).plugins}

        for name, releases in (
            ("PodResizeValidator", (36, 37)),
            ("NodeDeclaredFeatureValidator", (35, 36, 37)),
            ("JobValidation", (36,)),
            ("PodTopologyLabels", (33, 34, 35, 36, 37)),
            ("MutatingAdmissionPolicy", (32, 33, 34, 35, 36, 37)),
            ("NamespaceLifecycle", tuple(range(31, 38))),
        ):
            self.assertEqual(tuple(minor for minor in range(31, 38) if name in built((1, minor))), releases, name)
        for enabled, disabled in ((("PodResizeValidator",), ()), ((), ("PodResizeValidator",))):
            with self.assertRaisesRegex(PluginInitError, '"PodResizeValidator" is unknown'):
                build_chain(enabled, disabled, context, features=FeatureGates((1, 35)))


class StartTests(KubeAPIMixin, TestCase):
    """Tests of the flags that name plugins."""

    async def test_names(self) -> None:
        """Unknown plugins cannot be enabled or disabled."""
        for flag in ("enable", "disable"):
            with self.assertRaises(StartError) as caught:
                await self.startKubeAPI(f"--{flag}-admission-plugins=Nope")
            self.assertEqual(str(caught.exception), f'{flag}-admission-plugins plugin "Nope" is unknown')
