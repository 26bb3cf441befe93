"""Tests of L{kubetwist.registry.generic.hooks}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry import assembly
from kubetwist.registry.customresources.store import CustomStore
from kubetwist.registry.generic.hooks import StoreHooks, hook, is_hook
from kubetwist.registry.generic.store import Store


def subclasses(cls: type) -> set[type]:
    """Return all direct and indirect subclasses of a class."""
    return {one for child in cls.__subclasses__() for one in (child, *subclasses(child))}


class HookTests(SynchronousTestCase):
    """Tests of hooks."""

    def test_mark(self) -> None:
        """A method is a hook if it is marked."""

        def method() -> None:
            """Do nothing."""

        self.assertFalse(is_hook(method))
        self.assertIs(hook(method), method)
        self.assertTrue(is_hook(method))

    def test_only_hooks_are_overridden(self) -> None:
        """The stores of kinds override hooks and documented attributes only."""
        stores = [one for one in subclasses(Store) if one.__module__.startswith("kubetwist.")]
        self.assertIn(CustomStore, stores)
        self.assertIn(assembly.NamespaceStore, stores)
        free = {"__init__", "__module__", "__doc__", "__implemented__", "__annotations__", "converts", "interruptions"}
        free |= {"__providedBy__", "__provides__", "__static_attributes__", "__firstlineno__"}
        for store in stores:
            for name in store.__dict__.keys() - free:
                inherited = getattr(Store, name, None)
                if inherited is not None:
                    self.assertTrue(is_hook(inherited), f"{store.__name__}.{name} is no hook")

    def test_hooks_are_documented(self) -> None:
        """Every public method of the class of hooks is marked and has a docstring."""
        for name, method in vars(StoreHooks).items():
            if callable(method) and not name.startswith("_"):
                self.assertTrue(is_hook(method), name)
                self.assertTrue(method.__doc__, name)
