"""Tests of L{kubetwist.filters.priorityandfairness} in a whole server."""

from __future__ import annotations

import http.client
from base64 import b64encode
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin
from kubetwist.testing.webhooks import Call, WebhookServer

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


MAPS = "/api/v1/namespaces/default/configmaps"


TOKENS = 'admin-token,admin,1,"system:masters"\njane-token,jane,2\njoe-token,joe,3\n'


ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def threads_wait(good: Any) -> bool:
    """Wait in a thread for a condition."""
    import time

    deadline = time.monotonic() + 30
    while not good() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(good())


class FairnessTests(KubeAPIMixin, TestCase):
    """A server with few seats and a webhook that delays writes until the test releases them."""

    timeout = 60

    async def setUp(self) -> None:
        """Start a server with two users without special groups."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        (self.folder / "tokens.csv").write_text(TOKENS)
        self.server = InProcessServer(
            "--controllers=",
            "--authorization-mode=AlwaysAllow",
            "--max-requests-inflight=1",
            "--max-mutating-requests-inflight=1",
            token_auth_file=self.folder / "tokens.csv",
        )
        self.addCleanup(self.server.stop)
        await self.server.start()
        self.flow = self.server._service.server.apis.flow  # type: ignore[union-attr]
        self.delayed: list[Deferred[Any]] = []
        self.webhook = WebhookServer(reactor, self.hold)
        self.addCleanup(self.webhook.stop)
        self.addCleanup(self.release)
        await self.webhook.start()
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        hook = {
            "name": "slow.example.com",
            "clientConfig": {"url": self.webhook.url, "caBundle": b64encode(self.webhook.ca).decode()},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        code, answer = await self.ask("admin", "POST", path, {"metadata": {"name": "slow"}, "webhooks": [hook]})
        self.assertEqual(code, 201, answer)

    def hold(self, call: Call) -> Deferred[Any]:
        """Return a review that is answered by L{release}."""
        delayed: Deferred[Any] = Deferred()
        review = call.json()
        response = {"uid": review["request"]["uid"], "allowed": True}
        self.delayed.append(delayed)
        return delayed.addCallback(lambda _: {**review, "response": response})

    def release(self) -> None:
        """Answer all reviews."""
        delayed, self.delayed = self.delayed, []
        for one in delayed:
            one.callback(None)

    def ask(self, user: str, method: str, path: str, body: Any = None) -> Deferred[tuple[int, Any]]:
        """Send a request of a user."""
        connection = self.server.connection.with_token(f"{user}-token")
        return deferToThread(connection.request, method, path, body)

    def write(self, user: str, name: str) -> Deferred[tuple[int, Any]]:
        """Send a write that the webhook delays."""
        return self.ask(user, "POST", MAPS, {"metadata": {"name": name}})

    async def until(self, good: Any) -> None:
        """Wait for a condition."""
        while not good():
            await deferLater(reactor, 0.01)

    async def dump(self, name: str) -> dict[str, dict[str, str]]:
        """Return a dump as a table, by its first column."""
        code, text = await self.ask("admin", "GET", f"/debug/api_priority_and_fairness/{name}")
        self.assertEqual(code, 200)
        names, *rows = ([cell.strip() for cell in line.split(",")] for line in text.splitlines())
        return {row[0]: dict(zip(names, row, strict=True)) for row in rows}

    async def configure(self, name: str, response: dict[str, Any], user: str, level: str = "") -> None:
        """Create a priority level, and a flow schema that assigns a user's requests to it."""
        limited = {"nominalConcurrencyShares": 1, "lendablePercent": 0, "limitResponse": response}
        if not level:
            spec: dict[str, Any] = {"type": "Limited", "limited": {**limited, "borrowingLimitPercent": 0}}
            code, answer = await self.ask(
                "admin", "POST", f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": name}, "spec": spec}
            )
            self.assertEqual(code, 201, answer)
        subjects = [{"kind": "User", "user": {"name": user}}]
        spec = {
            "matchingPrecedence": 100,
            "priorityLevelConfiguration": {"name": level or name},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": subjects, "resourceRules": [ALL]}],
        }
        code, answer = await self.ask(
            "admin", "POST", f"{FLOW}/flowschemas", {"metadata": {"name": name}, "spec": spec}
        )
        self.assertEqual(code, 201, answer)
        if not level:
            await self.until(lambda: name in self.flow.levels and any(one.name == name for one in self.flow.schemas))

    async def test_waiting(self) -> None:
        """A request without a free seat is queued; exempt requests are not."""
        first = self.write("jane", "a")
        await self.until(lambda: len(self.delayed) == 1)
        second = self.ask("jane", "GET", MAPS)
        level = self.flow.levels["global-default"]
        await self.until(lambda: level.queues.waiting == 1)
        row = (await self.dump("dump_priority_levels"))["global-default"]
        self.assertEqual((row["WaitingRequests"], row["ExecutingRequests"], row["IsIdle"]), ("1", "1", "false"))
        code, text = await self.ask(
            "admin", "GET", "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1"
        )
        self.assertEqual(code, 200)
        self.assertEqual(sorted(line.split(",")[10].strip() for line in text.splitlines()[1:]), ["jane", "jane"])
        self.assertIn("configmaps", text)
        self.assertEqual((await self.ask("admin", "GET", MAPS))[0], 200)
        self.release()
        self.assertEqual([(await one)[0] for one in (first, second)], [201, 200])
        self.assertEqual((level.queues.waiting, level.queues.executing), (0, 0))

    async def test_metrics(self) -> None:
        """C{/metrics} has executing and queued requests by priority level and flow schema."""
        first = self.write("jane", "a")
        await self.until(lambda: len(self.delayed) == 1)
        second = self.ask("jane", "GET", MAPS)
        await self.until(lambda: self.flow.levels["global-default"].queues.waiting == 1)
        _, text = await self.ask("admin", "GET", "/metrics")
        labels = '{priority_level="global-default",flow_schema="global-default"}'
        for name, value in (("executing_requests", 1), ("executing_seats", 1), ("inqueue_requests", 1)):
            self.assertIn(f"apiserver_flowcontrol_current_{name}{labels} {value}\n", text)
        self.assertIn('apiserver_flowcontrol_nominal_limit_seats{priority_level="global-default"} 1\n', text)
        self.release()
        await first
        await second
        _, text = await self.ask("admin", "GET", "/metrics")
        self.assertIn(f"apiserver_flowcontrol_dispatched_requests_total{labels} 2\n", text)
        self.assertIn(f"apiserver_flowcontrol_current_inqueue_requests{labels} 0\n", text)
        self.assertIn("apiserver_flowcontrol_request_wait_duration_seconds_count", text)

    async def test_rejecting(self) -> None:
        """A level without queues answers 429 with Retry-After, and accepts requests when seats are free."""
        await self.configure("strict", {"type": "Reject"}, "joe")
        first = self.write("joe", "a")
        await self.until(lambda: len(self.delayed) == 1)
        code, headers, text = await deferToThread(self.bare, "joe-token")
        self.assertEqual((code, text), (429, "Too many requests, please try again later.\n"))
        self.assertEqual(headers["Retry-After"], "1")
        self.assertIn("X-Kubernetes-PF-FlowSchema-UID", headers)
        self.assertEqual((await self.ask("jane", "GET", MAPS))[0], 200)
        self.release()
        self.assertEqual((await first)[0], 201)
        self.assertEqual((await self.ask("joe", "GET", MAPS))[0], 200)
        self.assertEqual((await self.dump("dump_priority_levels"))["strict"]["RejectedRequests"], "1")

    def bare(self, token: str) -> tuple[int, dict[str, str], str]:
        """Send a GET; return status, headers and body. Blocking."""
        connection = self.server.connection
        client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30)
        try:
            client.request("GET", MAPS, headers={"Authorization": f"Bearer {token}"})
            answer = client.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            client.close()

    async def test_waiting_too_long(self) -> None:
        """A request that waits for a quarter of the request timeout is answered with 429."""
        first = self.write("jane", "a")
        await self.until(lambda: len(self.delayed) == 1)
        second = self.ask("jane", "GET", MAPS)
        queues = self.flow.levels["global-default"].queues
        await self.until(lambda: queues.waiting == 1)
        self.server.advance_time(15.1)
        self.assertEqual((await second)[0], 429)
        self.assertEqual((queues.waiting, queues.timed_out), (0, 1))
        self.release()
        await first

    async def test_disconnected(self) -> None:
        """A client that disconnects leaves its queue or releases its seat."""
        connection = self.server.connection
        first = self.write("jane", "a")
        await self.until(lambda: len(self.delayed) == 1)

        def hang_up() -> None:
            client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context())
            client.request("GET", MAPS, headers={"Authorization": "Bearer jane-token"})
            deadline = threads_wait(lambda: queues.waiting == 1)
            client.close()
            assert deadline

        queues = self.flow.levels["global-default"].queues
        await deferToThread(hang_up)
        await self.until(lambda: queues.cancelled == 1)
        self.assertEqual(queues.waiting, 0)
        self.release()
        await first

    async def test_dangling(self) -> None:
        """A flow schema without its priority level has the condition Dangling and is ignored until the level exists."""
        await self.configure("lost", {"type": "Reject"}, "joe", level="nowhere")

        async def condition() -> Any:
            _, obj = await self.ask("admin", "GET", f"{FLOW}/flowschemas/lost")
            return next((one for one in (obj.get("status") or {}).get("conditions") or ()), {})

        while (result := await condition()).get("status") != "True":
            await deferLater(reactor, 0.01)
        self.assertEqual((result["type"], result["reason"]), ("Dangling", "NotFound"))
        self.assertEqual((await self.ask("joe", "GET", MAPS))[0], 200)
        limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
        spec = {"type": "Limited", "limited": limited}
        await self.ask(
            "admin", "POST", f"{FLOW}/prioritylevelconfigurations", {"metadata": {"name": "nowhere"}, "spec": spec}
        )
        while (result := await condition()).get("status") != "False":
            await deferLater(reactor, 0.01)
        self.assertEqual(result["reason"], "Found")

    async def test_watches(self) -> None:
        """A watch occupies a seat only until its initial events are written."""
        await self.configure("strict", {"type": "Reject"}, "joe")
        watch = self.ask("joe", "GET", f"{MAPS}?watch=true&timeoutSeconds=3")
        await self.until(lambda: self.flow.levels["strict"].queues.dispatched == 1)
        self.assertEqual((await self.ask("joe", "GET", f"{MAPS}/none"))[0], 404)
        self.assertEqual((await watch)[0], 200)


class MaxInFlightTests(KubeAPIMixin, TestCase):
    """--enable-priority-and-fairness=false."""

    timeout = 60

    async def test_off(self) -> None:
        """Without priority and fairness there are no dumps or metrics, and requests are answered."""
        server = await self.startKubeAPI("--controllers=", "--enable-priority-and-fairness=false")
        connection = server.connection
        self.assertEqual((await deferToThread(connection.request, "GET", MAPS))[0], 200)
        code, _ = await deferToThread(
            connection.request, "GET", "/debug/api_priority_and_fairness/dump_priority_levels"
        )
        self.assertEqual(code, 404)
