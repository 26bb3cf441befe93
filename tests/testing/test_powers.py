"""Tests for what a test can do to an L{InProcessServer}, on trial's reactor."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.manifests import LoadError, objects_of
from kubetwist.testing.trial import KubeAPIMixin

FOOS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
MAPS = "/api/v1/namespaces/default/configmaps"


class Watch:
    """A watch as a blocking client has it; its methods are for threads."""

    def __init__(self, server: InProcessServer, path: str) -> None:
        connection = server.connection
        self._http = http.client.HTTPSConnection(
            "127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30
        )
        self._http.request("GET", path, headers={"Authorization": f"Bearer {connection.token}"})
        self.response = self._http.getresponse()

    def event(self) -> Any:
        """The next one; L{None} at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Leave."""
        self._http.close()


class PowerTestCase(KubeAPIMixin, TestCase):
    """With a server, and a few words to talk to it."""

    timeout = 60

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A blocking request, from a thread."""
        return await deferToThread(self.server.request, method, path, body)

    async def make(self, name: str) -> Any:
        """A ConfigMap in the default namespace."""
        code, made = await self.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"of": name}})
        self.assertEqual(code, 201, made)
        return made

    async def watch(self, path: str) -> Watch:
        """Begin to watch."""
        watch: Watch = await deferToThread(Watch, self.server, path)
        self.addCleanup(watch.close)
        return watch

    async def begin(self, *arguments: str) -> None:
        """Start the server of the test."""
        self.server = await self.startKubeAPI(*arguments)


class StateTests(PowerTestCase):
    """Tests for C{reset}, C{snapshot}, C{restore}, C{compact} and C{load}."""

    async def test_reset(self) -> None:
        """After a reset the server is as it was at its start, but for its revisions, and watches have ended."""
        await self.begin()
        server = self.server
        await server.reset()
        before = await server.snapshot()
        await server.load([FOOS, {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "a"}}])
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
        newest = (await self.make("a"))["metadata"]["resourceVersion"]
        await self.ask("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        await self.ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
        port = {"port": 80, "nodePort": 30080}
        service = {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [port]}}
        self.assertEqual((await self.ask("POST", "/api/v1/namespaces/default/services", service))[0], 201)
        watch = await self.watch("/apis/example.org/v1/foos?watch=1")
        maps = await self.watch(f"{MAPS}?watch=1&resourceVersion={newest}")

        await server.reset()

        after = await server.snapshot()
        self.assertEqual(
            {key: item.value for key, item in after.items.items()},
            {key: item.value for key, item in before.items.items()},
        )
        event = await deferToThread(watch.event)
        while event is not None:
            event = await deferToThread(watch.event)
        self.assertIsNone(await deferToThread(maps.event))
        self.assertEqual((await self.ask("GET", "/apis/example.org/v1/foos"))[0], 404)
        self.assertNotIn("example.org", str(await self.ask("GET", "/apis")))
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces/mine"))[0], 404)
        self.assertEqual((await self.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"))[0], 200)
        code, gone = await self.ask("GET", f"{MAPS}?resourceVersion={newest}&resourceVersionMatch=Exact")
        self.assertEqual((code, gone["reason"]), (410, "Expired"))
        self.assertGreater(int((await self.make("a"))["metadata"]["resourceVersion"]), int(newest))
        # What services shared is free again, too.
        self.assertEqual((await self.ask("POST", "/api/v1/namespaces/default/services", service))[0], 201)

    async def test_definitions_come_back(self) -> None:
        """A custom resource that a reset has taken away can be defined anew, and is empty."""
        await self.begin()
        foo = {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": "a"}}
        for _ in range(3):
            await self.server.load([FOOS, foo])
            _, listed = await self.ask("GET", "/apis/example.org/v1/foos")
            self.assertEqual([one["metadata"]["name"] for one in listed["items"]], ["a"])
            await self.server.reset()
            await self.server.load([FOOS])
            _, listed = await self.ask("GET", "/apis/example.org/v1/foos")
            self.assertEqual(listed["items"], [])
            await self.server.reset()

    async def test_busy_controllers(self) -> None:
        """A reset is final also while controllers are at work: they do nothing for what is not there any more."""
        await self.begin("--controllers=*,+workloads")
        await self.server.reset()
        before = set((await self.server.snapshot()).items)
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
        spec = {"replicas": 20, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        for _ in range(3):
            self.assertEqual((await self.ask("POST", path, {"metadata": {"name": "web"}, "spec": spec}))[0], 201)
            await self.server.reset()
            self.assertTrue(await self.server.settle())
            self.assertEqual(set((await self.server.snapshot()).items), before)

    async def test_without_controllers(self) -> None:
        """C{controllers=""} starts a server without any, which can be reset likewise."""
        self.server = server = InProcessServer(controllers="")
        await server.start()
        self.addCleanup(lambda: server.stop())
        await self.make("a")
        await server.reset()
        self.assertEqual((await self.ask("GET", f"{MAPS}/a"))[0], 404)
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces/default/serviceaccounts"))[1]["items"], [])

    async def test_restore(self) -> None:
        """What was there at a snapshot is there again, and watches that are open tell what that changes."""
        await self.begin()
        await self.server.reset()
        kept = await self.make("kept")
        await self.make("changed")
        snapshot = await self.server.snapshot()
        path = f"{MAPS}/changed"
        _, changed = await self.ask("GET", path)
        await self.ask("PUT", path, {**changed, "data": {"k": "v"}})
        await self.ask("DELETE", f"{MAPS}/kept")
        newest = (await self.make("new"))["metadata"]["resourceVersion"]
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion={newest}")
        await self.server.restore(snapshot)
        seen = [await deferToThread(watch.event) for _ in range(3)]
        self.assertEqual(
            sorted((event["type"], event["object"]["metadata"]["name"]) for event in seen),
            [("ADDED", "kept"), ("DELETED", "new"), ("MODIFIED", "changed")],
        )
        _, back = await self.ask("GET", f"{MAPS}/kept")
        self.assertEqual(back["metadata"]["uid"], kept["metadata"]["uid"])
        self.assertEqual((await self.ask("GET", path))[1]["data"], {"of": "changed"})

    async def test_compact(self) -> None:
        """After a compaction, watches from older revisions are told to list again."""
        await self.begin("--controllers=")
        old = (await self.make("a"))["metadata"]["resourceVersion"]
        await self.make("b")
        await self.server.compact()
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion={old}")
        event = await deferToThread(watch.event)
        self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]), ("ERROR", 410, "Expired"))

    async def test_load_a_dump(self) -> None:
        """A dump is loaded with status and owners, whose references are to what they have become."""
        await self.begin()
        text = """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata:
    {name: web-1, namespace: prod, uid: old-2, resourceVersion: "17", ownerReferences: [
      {apiVersion: apps/v1, kind: Deployment, name: web, uid: old-1, controller: true}]}
  spec: &spec
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: prod, uid: old-1, creationTimestamp: "2020-01-01T00:00:00Z"}
  spec: *spec
  status: {observedGeneration: 7, replicas: 3}
- {apiVersion: v1, kind: Namespace, metadata: {name: prod, uid: old-0}, status: {phase: Active}}
- {apiVersion: v1, kind: Service, metadata: {name: kubernetes, namespace: default}, spec: {clusterIP: 10.96.0.1}}
"""
        file = Path(self.mktemp())
        file.write_text(text)
        made = await self.server.load(file)
        self.assertEqual([obj["kind"] for obj in made], ["Namespace", "Deployment", "ReplicaSet"])
        _, deployment, owned = made
        self.assertEqual(deployment["status"]["observedGeneration"], 7)
        self.assertEqual(owned["metadata"]["ownerReferences"][0]["uid"], deployment["metadata"]["uid"])
        self.assertNotEqual(deployment["metadata"]["uid"], "old-1")

    async def test_load_twice(self) -> None:
        """What is there already is made as the manifest has it."""
        await self.begin("--controllers=")
        for value in ("1", "2"):
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}}
            (made,) = await self.server.load([obj])
            self.assertEqual(made["data"], {"k": value})

    async def test_load_refused(self) -> None:
        """What can not be loaded is named."""
        await self.begin("--controllers=", "--disable-admission-plugins=ServiceAccount")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {}}
        with self.assertRaisesRegex(LoadError, "Pod /bad: 422: .*spec.containers: Required"):
            await self.server.load([pod])
        with self.assertRaisesRegex(LoadError, "no Nothing in v1"):
            await self.server.load("{apiVersion: v1, kind: Nothing}")
        with self.assertRaisesRegex(LoadError, "not an object"):
            objects_of("- 1")


class RequestTests(PowerTestCase):
    """Tests for C{inject}, C{disturb_watches}, C{end_watches} and C{record_requests}."""

    async def test_inject(self) -> None:
        """Chosen requests are answered as a test wants, so often as it wants, and others as ever."""
        await self.begin("--controllers=")
        fault = self.server.inject(409, verb="update", resource="configmaps", name="a", times=2)
        made = await self.make("a")
        answers = [await self.ask("PUT", f"{MAPS}/a", made) for _ in range(3)]
        self.assertEqual([code for code, _ in answers], [409, 409, 200])
        self.assertEqual(
            answers[0][1]["message"],
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes '
            "to the latest version and try again",
        )
        self.assertEqual(fault.hits, 2)

    async def test_errors(self) -> None:
        """Errors are what clients know by their codes: reasons, and when to come again."""
        await self.begin("--controllers=")
        for code, reason in (
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (410, "Expired"),
            (503, "ServiceUnavailable"),
        ):
            with self.server.inject(code, path=MAPS, retry_after=7 if code == 429 else None, message="no"):
                got, status = await self.ask("GET", MAPS)
                self.assertEqual((got, status["reason"], status["message"]), (code, reason, "no"))
                if code == 429:
                    self.assertEqual(status["details"], {"retryAfterSeconds": 7})
        self.assertEqual((await self.ask("GET", MAPS))[0], 200)
        with self.assertRaisesRegex(ValueError, "200 is no error"):
            self.server.inject(200)

    async def test_delay_and_hang_up(self) -> None:
        """An answer can be late, and a connection end without one."""
        await self.begin("--controllers=")
        late = self.server.inject(delay=0.05, resource="configmaps", times=1)
        begun = reactor.seconds()  # type: ignore[attr-defined]
        self.assertEqual((await self.ask("GET", MAPS))[0], 200)
        self.assertGreaterEqual(reactor.seconds() - begun, 0.05)  # type: ignore[attr-defined]
        self.assertEqual(late.hits, 1)
        with self.server.inject(hang_up=True, where=lambda sent: sent.query.get("limit") == "1"):
            with self.assertRaises((http.client.HTTPException, OSError)):
                await self.ask("GET", f"{MAPS}?limit=1")
            self.assertEqual((await self.ask("GET", f"{MAPS}?limit=2"))[0], 200)

    async def test_watch_expired(self) -> None:
        """A watch that is to be 410 says so as the server would: in an event."""
        await self.begin("--controllers=")
        self.server.inject(410, verb="watch", times=1)
        watch = await self.watch(f"{MAPS}?watch=1")
        event = await deferToThread(watch.event)
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))
        self.assertIsNone(await deferToThread(watch.event))

    async def test_disturbed_watches(self) -> None:
        """Events can be lost, come twice and late, and streams break."""
        await self.begin("--controllers=")
        fault = self.server.disturb_watches(resource="configmaps", duplicate=True, drop=1, delay=0.01, times=1)
        watch, other = [await self.watch(f"{MAPS}?watch=1") for _ in range(2)]
        for name in "abc":
            await self.make(name)
        names = [(await deferToThread(watch.event))["object"]["metadata"]["name"] for _ in range(4)]
        self.assertEqual(names, ["b", "b", "c", "c"])
        names = [(await deferToThread(other.event))["object"]["metadata"]["name"] for _ in range(3)]
        self.assertEqual((names, fault.hits), (["a", "b", "c"], 1))
        self.server.disturb_watches(break_after=1)
        watch = await self.watch(f"{MAPS}?watch=1&resourceVersion=1")
        self.assertEqual((await deferToThread(watch.event))["object"]["metadata"]["name"], "a")
        with self.assertRaises(http.client.IncompleteRead):
            await deferToThread(watch.response.read)

    async def test_ended_watches(self) -> None:
        """Watches that are open can be ended, with a reason, without one, or by cutting the connection."""
        await self.begin("--controllers=")
        good, expired, cut = [await self.watch(f"{MAPS}?watch=1") for _ in range(3)]
        self.assertEqual(self.server.end_watches(resource="pods"), 0)
        seen = []

        def one_at_a_time(number: int) -> Any:
            return lambda sent: seen.append(sent) or len(seen) == number

        self.assertEqual(self.server.end_watches(where=one_at_a_time(1)), 1)
        self.assertIsNone(await deferToThread(good.event))
        seen.clear()
        self.assertEqual(self.server.end_watches(410, where=one_at_a_time(1)), 1)
        self.assertEqual((await deferToThread(expired.event))["object"]["reason"], "Expired")
        self.assertEqual(self.server.end_watches(hang_up=True), 1)
        with self.assertRaises((http.client.HTTPException, OSError)):
            await deferToThread(cut.response.read)

    async def test_log(self) -> None:
        """A log has what was requested, by whom, with which body and answer, and no more than it was told to keep."""
        await self.begin("--controllers=")
        with self.server.record_requests(limit=3) as log:
            await self.make("a")
            await self.ask("GET", f"{MAPS}/missing")
            (made,) = log.assert_requested(verb="create", resource="configmaps", namespace="default", times=1)
            self.assertEqual(
                (made.code, made.user, made.json()),
                (201, "kubetwist-test-admin", {"metadata": {"name": "a"}, "data": {"of": "a"}}),
            )
            self.assertEqual([sent.name for sent in log.matching(code=404)], ["missing"])
            with self.assertRaisesRegex(AssertionError, "0 requests with .*'pods'.*\n.*POST .*/configmaps -> 201"):
                log.assert_requested(resource="pods")
            for _ in range(3):
                await self.ask("GET", "/version")
            self.assertEqual([sent.path for sent in log.requests], ["/version"] * 3)
        await self.ask("GET", "/api")
        self.assertEqual(len(log.requests), 3)
        log.clear()
        self.assertEqual(log.requests, [])

    async def test_nothing_in_the_way(self) -> None:
        """Once faults and logs are gone, requests are handled as if there had never been any."""
        await self.begin("--controllers=")
        site = self.server._service.server.site
        handler = site.handler
        fault, log = self.server.inject(500), self.server.record_requests()
        self.assertIsNot(site.handler, handler)
        fault.remove()
        fault.remove()
        log.stop()
        self.assertIs(site.handler, handler)


class TimeTests(PowerTestCase):
    """Tests for C{freeze_time}, C{advance_time}, C{resume_time} and C{reset_clock}."""

    async def test_timestamps(self) -> None:
        """While the clock stands, objects are created at the same time; then it goes on from there."""
        await self.begin("--controllers=")
        self.server.freeze_time(1_000_000_000)
        first = (await self.make("a"))["metadata"]
        self.server.advance_time(3600)
        second = (await self.make("b"))["metadata"]
        self.assertEqual(first["creationTimestamp"], "2001-09-09T01:46:40Z")
        self.assertEqual(second["creationTimestamp"], "2001-09-09T02:46:40Z")
        self.assertEqual(second["managedFields"][0]["time"], "2001-09-09T02:46:40Z")
        self.server.resume_time()
        self.assertGreaterEqual(self.server.now, 1_000_003_600)
        self.server.reset_clock()
        self.assertGreater(self.server.now, 1_700_000_000)

    async def test_expiry(self) -> None:
        """Events go when the time of the server says so, and not before."""
        await self.begin("--controllers=", "--event-ttl=1h")
        self.server.freeze_time()
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        path = "/api/v1/namespaces/default/events"
        self.assertEqual((await self.ask("POST", path, event))[0], 201)
        self.server.advance_time(3599)
        self.assertEqual((await self.ask("GET", f"{path}/e"))[0], 200)
        watch = await self.watch(f"{path}?watch=1")
        self.server.advance_time(2)
        while (await deferToThread(watch.event))["type"] != "DELETED":
            pass
        self.assertEqual((await self.ask("GET", f"{path}/e"))[0], 404)

    async def test_tokens(self) -> None:
        """A token is good until it expires by the server's clock."""
        await self.begin()
        await self.server.reset()
        request = {"spec": {"expirationSeconds": 600}}
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        _, made = await self.ask("POST", path, request)
        review = {"spec": {"token": made["status"]["token"]}}
        for seconds, good in ((0, True), (500, True), (200, None)):
            self.server.advance_time(seconds)
            _, answer = await self.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
            self.assertEqual(answer["status"].get("authenticated"), good)

    async def test_controllers_see_the_time(self) -> None:
        """What controllers wait for happens when the clock of the server says so."""
        await self.begin()
        await self.server.reset()
        self.server.freeze_time(1_000_000_000)
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "one", "image": "one"}]}}
        path = "/apis/batch/v1/namespaces/default/jobs"
        job = {"metadata": {"name": "done"}, "spec": {"ttlSecondsAfterFinished": 7200, "template": template}}
        _, made = await self.ask("POST", path, job)
        then = made["metadata"]["creationTimestamp"]
        made["status"] = {
            "startTime": then,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": then} for kind in ("FailureTarget", "Failed")
            ],
        }
        code, answer = await self.ask("PUT", f"{path}/done/status", made)
        self.assertEqual(code, 200, answer)
        for seconds, code in ((7100, 200), (200, 404)):
            self.server.advance_time(seconds)
            self.assertTrue(await self.server.settle())
            self.assertEqual((await self.ask("GET", f"{path}/done"))[0], code)

    async def test_reset_rights_the_clock(self) -> None:
        """A reset has the clock right again, and a stop, too."""
        await self.begin()
        self.server.freeze_time(5)
        await self.server.reset()
        self.assertGreater(self.server.now, 1_700_000_000)
        self.server.freeze_time(5)
        await self.server.stop()
        other = await self.startKubeAPI("--controllers=")
        self.assertGreater(other.now, 1_700_000_000)

    async def test_watches_outlive_a_frozen_clock(self) -> None:
        """A watch shows changes while the clock stands."""
        await self.begin("--controllers=")
        self.server.freeze_time()
        watch = await self.watch(f"{MAPS}?watch=1")
        await self.make("a")
        self.assertEqual((await deferToThread(watch.event))["type"], "ADDED")
        await deferLater(reactor, 0)  # type: ignore[arg-type]
