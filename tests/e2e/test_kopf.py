"""Tests with C{kopf}: an operator with finalizers, diffs and annotations, stopped and restarted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import kopf
import pytest
from kubernetes import client, config, watch

from kubetwist.testing import ChildKubeAPI, SubprocessServer

TIMEOUT = 30


@pytest.fixture(scope="module", params=["process", "child"])
def server(request: pytest.FixtureRequest, server: SubprocessServer) -> Iterator[SubprocessServer | ChildKubeAPI]:
    """A production server, and the server with an empty store for tests of operators."""
    if request.param == "process":
        yield server
        return
    with ChildKubeAPI() as kube_api:
        yield kube_api


class Operator(threading.Thread):
    """
    Operator that mirrors ConfigMaps labelled C{mirror=yes}, and deletes the copies with them.

    @ivar calls: The calls of its handlers: cause, name, old and new data.
    """

    def __init__(self, server: SubprocessServer | ChildKubeAPI, core: client.CoreV1Api, namespace: str) -> None:
        super().__init__(daemon=True)
        self.server, self.core, self.namespace = server, core, namespace
        self.calls: list[tuple[Any, ...]] = []
        self.failure: BaseException | None = None
        self._ready, self._stop_flag = threading.Event(), threading.Event()

    def __enter__(self) -> Operator:
        self.start()
        assert self._ready.wait(TIMEOUT), "the operator did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop_flag.set()
        self.join(TIMEOUT)
        assert not self.is_alive(), "the operator did not end"
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        """Run in an event loop of this thread until stopped."""
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.persistence.finalizer = "example.org/mirror"
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage()
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage()
        self._handlers(registry)
        operator = kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            namespaces=[self.namespace],
            ready_flag=self._ready,
            stop_flag=self._stop_flag,
        )
        try:
            asyncio.run(operator)
        except BaseException as error:
            self.failure = error

    def _handlers(self, registry: kopf.OperatorRegistry) -> None:
        chosen: dict[str, Any] = {"registry": registry, "labels": {"mirror": "yes"}}

        @kopf.on.login(registry=registry)
        def login(**_: Any) -> kopf.ConnectionInfo:
            connection = self.server.connection
            return kopf.ConnectionInfo(
                server=connection.url, ca_data=connection.ca.encode(), scheme="Bearer", token=connection.token
            )

        @kopf.on.create("configmaps", **chosen)
        def create(name: str, body: kopf.Body, **_: Any) -> None:
            self.calls.append(("create", name, dict(body["data"])))
            metadata = client.V1ObjectMeta(name=f"{name}-mirror")
            self.core.create_namespaced_config_map(
                self.namespace, client.V1ConfigMap(metadata=metadata, data=dict(body["data"]))
            )

        @kopf.on.update("configmaps", field="data", **chosen)
        def update(name: str, old: Any, new: Any, **_: Any) -> None:
            self.calls.append(("update", name, dict(old), dict(new)))
            self.core.patch_namespaced_config_map(f"{name}-mirror", self.namespace, {"data": dict(new)})

        @kopf.on.delete("configmaps", **chosen)
        def delete(name: str, **_: Any) -> None:
            self.calls.append(("delete", name))
            self.core.delete_namespaced_config_map(f"{name}-mirror", self.namespace)


@pytest.fixture
def core(server: SubprocessServer | ChildKubeAPI) -> Iterator[client.CoreV1Api]:
    """The API for the tests and the handlers."""
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        yield client.CoreV1Api(api)


def await_state(core: client.CoreV1Api, namespace: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Watch the ConfigMaps of a namespace until they have the expected state, by name."""
    listed = core.list_namespaced_config_map(namespace)
    state = {one.metadata.name: one for one in listed.items}
    if reached(state):
        return state
    for event in watch.Watch().stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=TIMEOUT,
    ):
        one = event["object"]
        if event["type"] == "DELETED":
            del state[one.metadata.name]
        else:
            state[one.metadata.name] = one
        if reached(state):
            return state
    raise AssertionError(f"not reached: {state}")


def make(core: client.CoreV1Api, namespace: str, name: str, data: dict[str, str]) -> None:
    """Create a ConfigMap that the operator mirrors."""
    metadata = client.V1ObjectMeta(name=name, labels={"mirror": "yes"})
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata, data=data))


def handled(one: Any, data: dict[str, str]) -> bool:
    """Return whether the operator has recorded that it handled this content."""
    noted = (one.metadata.annotations or {}).get("kopf.zalando.org/last-handled-configuration", "")
    return one.data == data and all(f'"{value}"' in noted for value in data.values())


def test_operator(server: SubprocessServer | ChildKubeAPI, core: client.CoreV1Api, namespace: str) -> None:
    """An operator handles each change once, also changes while it was down, and delays deletions until it is done."""
    with Operator(server, core, namespace) as first:
        make(core, namespace, "one", {"k": "first"})
        make(core, namespace, "two", {"k": "other"})
        state = await_state(
            core,
            namespace,
            lambda state: (
                {"one", "two", "one-mirror", "two-mirror"} <= state.keys()
                and handled(state["one"], {"k": "first"})
                and handled(state["two"], {"k": "other"})
            ),
        )
        assert state["one"].metadata.finalizers == ["example.org/mirror"]
        core.patch_namespaced_config_map("one", namespace, {"data": {"k": "second"}})
        await_state(core, namespace, lambda state: handled(state["one"], {"k": "second"}))
    assert sorted(first.calls[:2]) == [("create", "one", {"k": "first"}), ("create", "two", {"k": "other"})]
    assert first.calls[2:] == [("update", "one", {"k": "first"}, {"k": "second"})]

    core.patch_namespaced_config_map("one", namespace, {"data": {"k": "third"}})
    core.delete_namespaced_config_map("two", namespace)
    make(core, namespace, "three", {"k": "new"})
    state = await_state(core, namespace, lambda state: "three" in state)
    assert state["two"].metadata.deletion_timestamp is not None
    assert state["one-mirror"].data == {"k": "second"}

    with Operator(server, core, namespace) as second:
        state = await_state(
            core,
            namespace,
            lambda state: (
                "two" not in state
                and "three-mirror" in state
                and handled(state["one"], {"k": "third"})
                and handled(state["three"], {"k": "new"})
            ),
        )
        assert "two-mirror" not in state
        assert state["one-mirror"].data == {"k": "third"}
        for name in ("one", "three"):
            core.delete_namespaced_config_map(name, namespace)
        await_state(core, namespace, lambda state: not state.keys() & {"one", "one-mirror", "three", "three-mirror"})
    assert sorted(second.calls[:3]) == [
        ("create", "three", {"k": "new"}),
        ("delete", "two"),
        ("update", "one", {"k": "second"}, {"k": "third"}),
    ]
    assert sorted(second.calls[3:]) == [("delete", "one"), ("delete", "three")]
