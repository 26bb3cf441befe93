"""Tests for L{kubetwist.admission_plugins.compiledobjects}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.compiledobjects import CompiledObjectCache
from kubetwist.admission_plugins.policies.policy import Policy
from kubetwist.admission_plugins.policies.source import PolicySource
from kubetwist.api.resource import JSONObject
from kubetwist.storage.errors import StorageUnavailable


class Cache:
    """A fake watch cache of one resource."""

    def __init__(self) -> None:
        self.ready = True
        self.revision = 1
        self.objects: dict[str, tuple[int, JSONObject]] = {}
        self.sinks: list[Any] = []

    def watch(self, scope: str, sink: Any) -> object:
        """Start a watch."""
        self.sinks.append(sink)
        return sink

    def list(self) -> Any:
        """Return the records in the order of their names."""
        records = [SimpleNamespace(name=name, revision=at) for name, (at, _) in sorted(self.objects.items())]
        return SimpleNamespace(records=records)

    def put(self, name: str, **spec: Any) -> None:
        """Write an object, and send its event."""
        self.revision += 1
        self.objects[name] = (self.revision, {"metadata": {"name": name}, "spec": spec})
        for sink in self.sinks:
            sink.send("ADDED", None, None)


class Server:
    """A fake context of plugins: caches by resource."""

    def __init__(self, **caches: Cache) -> None:
        self.caches = caches
        self.stores = SimpleNamespace(find=self.find)

    def find(self, group: str, resource: str) -> Any:
        """Return the store of a resource."""
        cache = self.caches.get(resource)
        return None if cache is None else SimpleNamespace(cache=cache)

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject:
        """Return an object."""
        return self.caches[resource].objects[name][1]


class CompiledObjectCacheTests(SynchronousTestCase):
    """Compiled objects of one resource."""

    def setUp(self) -> None:
        """Create an empty cache."""
        self.cache = Cache()
        self.compiled: list[str] = []
        self.objects: CompiledObjectCache[str] = CompiledObjectCache(
            Server(things=self.cache),  # type: ignore[arg-type] # stands in for it
            "things",
            self.compile,
        )

    def compile(self, obj: JSONObject) -> str:
        """Return the name, and record the call."""
        name: str = obj["metadata"]["name"]
        self.compiled.append(name)
        return name

    def test_changes(self) -> None:
        """An object is compiled once per revision, and objects are in the order of their names."""
        self.cache.put("b")
        self.objects.refresh()
        self.assertEqual((self.objects.objects, self.compiled), (["b"], ["b"]))
        self.cache.put("a")
        self.assertFalse(self.objects.is_current)
        self.objects.refresh()
        self.assertTrue(self.objects.is_current)
        self.assertEqual((self.objects.objects, self.compiled), (["a", "b"], ["b", "a"]))
        self.objects.refresh()
        self.assertEqual(self.compiled, ["b", "a"])

    def test_deleted(self) -> None:
        """A deleted object is not in the next list; the previous list is unchanged."""
        self.cache.put("a")
        self.objects.refresh()
        before = self.objects.objects
        self.cache.objects.clear()
        self.cache.sinks[0].send("DELETED", None, None)
        self.objects.refresh()
        self.assertEqual((before, self.objects.objects), (["a"], []))

    def test_not_synced(self) -> None:
        """A cache that was never filled is an error."""
        self.cache.ready, self.cache.revision = False, 0
        self.assertRaises(StorageUnavailable, self.objects.refresh)
        self.assertFalse(self.objects.is_current)

    def test_refilled(self) -> None:
        """While a cache is refilled its old content is used; afterwards it is watched again."""
        self.cache.put("a")
        self.objects.refresh()
        self.cache.ready = False
        self.cache.sinks.pop().end(None)
        self.objects.refresh()
        self.assertEqual((self.objects.objects, self.objects.is_current), (["a"], False))
        self.cache.ready = True
        self.objects.refresh()
        self.assertEqual((self.objects.is_current, len(self.cache.sinks)), (True, 1))
        self.assertEqual(self.compiled, ["a"])

    def test_not_served(self) -> None:
        """A resource that is not served has no objects."""
        objects = CompiledObjectCache(Server(), "other", self.compile)  # type: ignore[arg-type] # stands in for it
        objects.refresh()
        self.assertEqual((objects.objects, objects.is_current), ([], True))


class PolicySourceTests(SynchronousTestCase):
    """Policies with their bindings."""

    def test_late_bindings(self) -> None:
        """Policies that were read before their bindings could be are used once the bindings can be read."""
        policies, bindings = Cache(), Cache()
        policies.put("p", matchConstraints={})
        bindings.ready, bindings.revision = False, 0
        server = Server(validatingadmissionpolicies=policies, validatingadmissionpolicybindings=bindings)
        source: PolicySource[Policy] = PolicySource(server, "validatingadmissionpolicies", Policy)  # type: ignore[arg-type] # stands in for it
        self.assertRaises(StorageUnavailable, source.hooks)
        bindings.ready, bindings.revision = True, 1
        bindings.put("b", policyName="p")
        self.assertEqual([(policy.name, len(result)) for policy, result in source.hooks()], [("p", 1)])
