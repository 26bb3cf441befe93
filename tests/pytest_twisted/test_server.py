"""Tests of the fixture C{kube_api_twisted}: awaited requests to a server on the reactor of the tests."""

from __future__ import annotations

import threading

import pytest_twisted

import treq
from twisted.internet import reactor
from twisted.internet.task import deferLater

from kubetwist.testing import InProcessServer

from .watching import Watch

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_twisted.ensureDeferred
async def test_store(kube_api_twisted: InProcessServer) -> None:
    """An object that was created can be read."""
    client = kube_api_twisted.connection.treq()
    created = await client.post(CONFIG_MAPS, json={"metadata": {"name": "mine"}, "data": {"k": "v"}})
    assert created.code == 201
    found = await treq.json_content(await client.get(f"{CONFIG_MAPS}/mine"))
    assert found["data"] == {"k": "v"}


@pytest_twisted.ensureDeferred
async def test_empty_store(kube_api_twisted: InProcessServer) -> None:
    """Each test has a server without objects of other tests."""
    found = await kube_api_twisted.connection.treq().get(f"{CONFIG_MAPS}/mine")
    assert found.code == 404


@pytest_twisted.inlineCallbacks
def test_inline_callbacks(kube_api_twisted: InProcessServer):  # type: ignore[no-untyped-def]
    """A test can be a generator that yields Deferreds."""
    response = yield kube_api_twisted.connection.treq().get("/readyz")
    assert (yield treq.text_content(response)) == "ok"


@pytest_twisted.ensureDeferred
async def test_one_thread(kube_api_twisted: InProcessServer) -> None:
    """The test runs in the thread of the reactor, and the token authenticates an administrator."""
    assert threading.current_thread() is threading.main_thread()
    await deferLater(reactor, 0)  # type: ignore[arg-type]
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    response = await kube_api_twisted.connection.treq().post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review
    )
    user = (await treq.json_content(response))["status"]["userInfo"]
    assert "system:masters" in user["groups"]


@pytest_twisted.ensureDeferred
async def test_watch(kube_api_twisted: InProcessServer) -> None:
    """A watch receives the events of an object in order, and ends when the server ends it."""
    client = kube_api_twisted.connection.treq()
    watch = Watch(await client.get(CONFIG_MAPS, params={"watch": "1", "fieldSelector": "metadata.name=mine"}))
    await client.post(CONFIG_MAPS, json={"metadata": {"name": "mine"}})
    await client.put(f"{CONFIG_MAPS}/mine", json={"metadata": {"name": "mine"}, "data": {"k": "v"}})
    await client.delete(f"{CONFIG_MAPS}/mine")
    events = [await watch.next_event() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[1]["object"]["data"] == {"k": "v"}
    assert kube_api_twisted.end_watches() == 1
    await watch.ended


@pytest_twisted.ensureDeferred
async def test_controller(kube_api_twisted: InProcessServer) -> None:
    """The garbage collector deletes an object after its owner."""
    client = kube_api_twisted.connection.treq()
    owner = await treq.json_content(await client.post(CONFIG_MAPS, json={"metadata": {"name": "owner"}}))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await client.post(CONFIG_MAPS, json={"metadata": {"name": "owned", "ownerReferences": [reference]}})
    watch = Watch(await client.get(CONFIG_MAPS, params={"watch": "1", "fieldSelector": "metadata.name=owned"}))
    assert (await watch.next_event())["type"] == "ADDED"
    await client.delete(f"{CONFIG_MAPS}/owner", params={"propagationPolicy": "Background"})
    assert (await watch.next_event())["type"] == "DELETED"


@pytest_twisted.ensureDeferred
async def test_service_account(kube_api_twisted: InProcessServer) -> None:
    """A new namespace has a default service account once the controllers are idle."""
    client = kube_api_twisted.connection.treq()
    await client.post("/api/v1/namespaces", json={"metadata": {"name": "mine"}})
    assert await kube_api_twisted.settle()
    found = await client.get("/api/v1/namespaces/mine/serviceaccounts/default")
    assert found.code == 200


@pytest_twisted.ensureDeferred
async def test_clock(kube_api_twisted: InProcessServer) -> None:
    """Objects have the time of the server's clock, which the test stops and advances."""
    client = kube_api_twisted.connection.treq()
    kube_api_twisted.freeze_time(1_000_000_000)
    first = await treq.json_content(await client.post(CONFIG_MAPS, json={"metadata": {"name": "first"}}))
    kube_api_twisted.advance_time(3600)
    second = await treq.json_content(await client.post(CONFIG_MAPS, json={"metadata": {"name": "second"}}))
    assert first["metadata"]["creationTimestamp"] == "2001-09-09T01:46:40Z"
    assert second["metadata"]["creationTimestamp"] == "2001-09-09T02:46:40Z"


@pytest_twisted.ensureDeferred
async def test_expiry(kube_api_twisted: InProcessServer) -> None:
    """An event expires after one hour on the server's clock."""
    client = kube_api_twisted.connection.treq()
    events = "/api/v1/namespaces/default/events"
    kube_api_twisted.freeze_time()
    await client.post(events, json={"metadata": {"name": "mine"}, "involvedObject": {"namespace": "default"}})
    kube_api_twisted.advance_time(3599)
    # The server's clock also ends watches, after at most an hour.
    watch = Watch(await client.get(events, params={"watch": "1", "fieldSelector": "metadata.name=mine"}))
    assert (await watch.next_event())["type"] == "ADDED"
    kube_api_twisted.advance_time(2)
    assert (await watch.next_event())["type"] == "DELETED"
