"""Tests for L{ResourceQuota} with concurrent writes: the usage is written in the transaction of the object."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred

from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.admission_plugins.resourcequota import ResourceQuota
from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, UpdateOptions
from kubetwist.api.resource import JSONObject
from kubetwist.registry.generic.parts import status_rules
from kubetwist.registry.generic.store import Store
from kubetwist.storage.errors import StorageUnavailable
from tests.admission_plugins.fakes import Context
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


class Slow:
    """
    A backend whose commits wait for the test.

    @ivar waiting: Number of waiting commits.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._commits: list[tuple[Any, Deferred[int]]] = []
        self.most = 0
        self.failing = False

    def commit(self, writes: Any) -> Deferred[int]:
        """Delay the commit."""
        done: Deferred[int] = Deferred()
        self._commits.append((writes, done))
        self.most = max(self.most, len(self._commits))
        return done

    def go_on(self) -> None:
        """Run the waiting commits until none is left."""
        while self._commits:
            writes, done = self._commits.pop(0)
            if self.failing:
                done.errback(StorageUnavailable("full"))
            else:
                self._backend.commit(writes).chainDeferred(done)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


class QuotaTestCase(StoreTestCase):
    """A test case of quotas over stores."""

    resources = ("pods", "resourcequotas", "configmaps", "secrets", "services", "persistentvolumeclaims", "events")

    def quota(self, name: str = "q", spec: JSONObject | None = None, **hard: str) -> None:
        """Create an enforced quota; C{_} in a name stands for a dot."""
        hard = {key.replace("_", "."): amount for key, amount in hard.items()}
        quotas = self.store("resourcequotas")
        self.made(quotas, {"metadata": {"name": name}, "spec": {"hard": hard, **(spec or {})}})
        status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        self.changed(quotas, name, lambda obj: obj.update(status=status), rules=status_rules(quotas))

    def use(self, *limited: JSONObject) -> None:
        """Enable the plugin for all writes."""
        kind = {"kind": "ResourceQuotaConfiguration", "apiVersion": "apiserver.config.k8s.io/v1"}
        plugin = ResourceQuota.configured(Context(), {**kind, "limitedResources": list(limited)} if limited else None)
        self.server.admit(plugin)

    def used(self, name: str = "q") -> Any:
        """Return the used amounts of a quota."""
        return self.stored(self.store("resourcequotas"), name)["status"]["used"]

    def slow(self, store: Store) -> Slow:
        """Delay commits."""
        store.backend = slow = Slow(self.server.backend)  # type: ignore[assignment]
        return slow

    def create(self, store: Store, obj: JSONObject) -> Deferred[Any]:
        """Start to create an object."""
        store.strategy.default(obj)
        return ensureDeferred(store.create(self.scope, obj, CreateOptions()))


class CommitTests(QuotaTestCase):
    """Tests of the transaction of object and usage."""

    def test_no_overshoot(self) -> None:
        """Of a hundred concurrent creates exactly as many succeed as the quota allows, and each is counted."""
        self.quota(configmaps="30")
        self.use()
        store = self.store("configmaps")
        slow = self.slow(store)
        creates = [self.create(store, {"metadata": {"name": f"c{number}"}}) for number in range(100)]
        slow.go_on()
        refused = 0
        for one in creates:
            outcome: list[Any] = []
            one.addBoth(outcome.append)
            value = getattr(outcome[0], "value", None)
            if isinstance(value, APIStatusError):
                self.assertIn("exceeded quota: q, requested: configmaps=1, used: configmaps=30", value.message)
                refused += 1
        self.assertEqual((refused, self.used()), (70, {"configmaps": "30"}))
        self.assertEqual(slow.most, 1)
        self.assertEqual(len(self.stores.list_copies("", "configmaps", "default")), 30)

    def test_many_rejected(self) -> None:
        """A thousand concurrent creates are all answered, although most of them are rejected one after the other."""
        self.quota(configmaps="1")
        self.use()
        store = self.store("configmaps")
        slow = self.slow(store)
        creates = [self.create(store, {"metadata": {"name": f"c{number}"}}) for number in range(1000)]
        slow.go_on()
        rejected = [create for create in creates if isinstance(getattr(create.result, "value", None), APIStatusError)]
        for create in creates:
            create.addErrback(lambda failure: failure.trap(APIStatusError) and None)
        self.assertEqual((len(rejected), self.used()), (999, {"configmaps": "1"}))

    def test_one_revision(self) -> None:
        """The object and the quota get the same revision, so that no reader sees one without the other."""
        self.quota(configmaps="1")
        self.use()
        request = self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        quota = self.stored(self.store("resourcequotas"), "q")
        self.assertEqual(quota["metadata"]["resourceVersion"], request["metadata"]["resourceVersion"])

    def test_nothing_written(self) -> None:
        """A failed write is not counted and does not block other writes."""
        self.quota(configmaps="1")
        self.use()
        store = self.store("configmaps")
        slow = self.slow(store)
        slow.failing = True
        done = self.create(store, {"metadata": {"name": "a"}})
        slow.go_on()
        self.failureResultOf(done, StorageUnavailable)
        slow.failing = False
        done = self.create(store, {"metadata": {"name": "a"}})
        slow.go_on()
        self.successResultOf(done)
        self.assertEqual(self.used(), {"configmaps": "1"})

    def test_cancelled(self) -> None:
        """A cancelled write that waits for another one is not counted."""
        self.quota(configmaps="2")
        self.use()
        store = self.store("configmaps")
        slow = self.slow(store)
        creates = [self.create(store, {"metadata": {"name": f"c{number}"}}) for number in range(3)]
        creates[1].addErrback(lambda failure: None)
        creates[1].cancel()
        slow.go_on()
        self.successResultOf(creates[0])
        self.successResultOf(creates[2])
        self.assertEqual(self.used(), {"configmaps": "2"})

    def test_existing_name(self) -> None:
        """A create with an existing name is not counted."""
        self.quota(configmaps="5")
        self.use()
        store = self.store("configmaps")
        self.made(store, {"metadata": {"name": "a"}})
        error = self.refused(store.create(self.scope, {"metadata": {"name": "a"}}, CreateOptions()))
        self.assertEqual((error.reason, self.used()), ("AlreadyExists", {"configmaps": "1"}))

    def test_concurrent_quota_write(self) -> None:
        """A quota that is changed concurrently is read again; a deleted quota counts nothing."""
        self.quota(configmaps="5")
        self.use()
        store, quotas = self.store("configmaps"), self.store("resourcequotas")
        rules = status_rules(quotas)
        backend = self.racing_backend(store)
        used = {"used": {"configmaps": "3"}, "hard": {"configmaps": "5"}}
        backend.before.append(lambda: self.changed(quotas, "q", lambda obj: obj.update(status=used), rules=rules))
        self.made(store, {"metadata": {"name": "a"}})
        self.assertEqual((self.used(), backend.commits), ({"configmaps": "4"}, 2))
        used["used"] = {"configmaps": "5"}
        backend.before.append(lambda: self.changed(quotas, "q", lambda obj: obj.update(status=used), rules=rules))
        error = self.refused(store.create(self.scope, {"metadata": {"name": "b"}}, CreateOptions()))
        self.assertIn("exceeded quota: q", error.message)
        used["used"] = {"configmaps": "0"}
        self.changed(quotas, "q", lambda obj: obj.update(status=used), rules=rules)
        backend.before.append(lambda: self.delete(quotas, "q"))
        self.made(store, {"metadata": {"name": "b"}})

    def test_several_quotas(self) -> None:
        """An object is counted in all matching quotas, or in none."""
        self.quota("a", configmaps="2")
        self.quota("b", **{"count/configmaps": "1"})
        self.use()
        store = self.store("configmaps")
        self.made(store, {"metadata": {"name": "x"}})
        error = self.refused(store.create(self.scope, {"metadata": {"name": "y"}}, CreateOptions()))
        self.assertIn("exceeded quota: b, requested: count/configmaps=1", error.message)
        self.assertEqual((self.used("a"), self.used("b")), ({"configmaps": "1"}, {"count/configmaps": "1"}))

    def test_update(self) -> None:
        """An update is counted by its additional usage, and not if its usage decreases."""
        self.quota(requests_storage="3Gi")
        self.use()
        claims = self.store("persistentvolumeclaims")

        def claim(storage: str) -> JSONObject:
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
            return {"metadata": {"name": "c"}, "spec": {**spec, "volumeName": "v"}, "status": {"phase": "Bound"}}

        self.made(claims, claim("1Gi"))
        self.changed(claims, "c", lambda obj: obj.update(status={"phase": "Bound"}), rules=status_rules(claims))
        self.changed(claims, "c", lambda obj: obj["spec"]["resources"].update(requests={"storage": "2Gi"}))
        self.assertEqual(self.used(), {"requests.storage": "2Gi"})

        def fields(obj: Any) -> Any:
            obj["spec"]["resources"]["requests"]["storage"] = "4Gi"
            return obj

        error = self.refused(claims.update(self.scope, "c", fields, UpdateOptions(), patching=True))
        self.assertIn("exceeded quota: q, requested: requests.storage=2Gi", error.message)

    def test_events(self) -> None:
        """Events are not counted."""
        self.quota(**{"count/events": "0"})
        self.use()
        involved = {"kind": "Pod", "namespace": "default", "name": "p"}
        self.made(self.store("events"), {"metadata": {"name": "e"}, "involvedObject": involved})
        self.assertEqual(self.used(), {"count/events": "0"})


class LimitedTests(QuotaTestCase):
    """Tests of limited resources, which need a quota."""

    def test_resources(self) -> None:
        """The usage of limited resources must be covered by a quota."""
        self.use({"resource": "configmaps", "matchContains": ["count/config"]})
        store = self.store("configmaps")
        error = self.refused(store.create(self.scope, {"metadata": {"name": "a"}}, CreateOptions()))
        self.assertEqual(error.message, 'configmaps "a" is forbidden: insufficient quota to consume: count/configmaps')
        self.made(self.store("secrets"), {"metadata": {"name": "s"}, "type": "Opaque"})
        self.quota(**{"count/configmaps": "1"})
        self.made(store, {"metadata": {"name": "a"}})
        self.assertEqual(self.used(), {"count/configmaps": "1"})

    def test_scopes(self) -> None:
        """Pods of a limited priority class need a quota with that scope."""
        scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "higher"]}
        self.use({"resource": "pods", "matchScopes": [scope]})
        pods = self.store("pods")

        def of(priority: str, name: str = "p") -> JSONObject:
            obj = pod(name)
            obj["spec"]["priorityClassName"] = priority
            pods.strategy.default(obj)
            return obj

        error = self.refused(pods.create(self.scope, of("high"), CreateOptions()))
        self.assertEqual(
            (error.code, error.message),
            (500, "insufficient quota to match these scopes: [{PriorityClass In [high higher]}]"),
        )
        self.made(pods, of("low"))
        self.quota(spec={"scopeSelector": {"matchExpressions": [{**scope, "values": ["high"]}]}}, pods="1")
        self.made(pods, of("high", "h"))
        self.assertEqual(self.used(), {"pods": "1"})
        error = self.refused(pods.create(self.scope, of("higher", "i"), CreateOptions()))
        self.assertEqual(error.code, 500)

    def test_configuration(self) -> None:
        """An invalid configuration stops the server."""
        for limited, text in (
            ({"matchContains": ["a"]}, "limitedResources[0].resource: Required value"),
            ({"resource": "pods", "contains": []}, 'unknown field "limitedResources[0].contains"'),
            ({"resource": "pods", "matchContains": "a"}, "expected a list"),
        ):
            with self.assertRaises(InvalidConfiguration) as raised:
                self.use(limited)
            self.assertIn(text, str(raised.exception))
