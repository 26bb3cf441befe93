"""Tests with the official Python client, C{kubernetes}."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from kubetwist.testing import SubprocessServer


@pytest.fixture
def api(server: SubprocessServer) -> Iterator[client.ApiClient]:
    """The client configured by the kubeconfig."""
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        yield api


def config_map(name: str, **labels: str) -> client.V1ConfigMap:
    """Return a ConfigMap that contains its name."""
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data={"name": name})


def test_crud(api: client.ApiClient, namespace: str) -> None:
    """Create, read, replace, patch, list and delete work on typed objects."""
    apps = client.AppsV1Api(api)
    labels = {"app": "web"}
    created = apps.create_namespaced_deployment(
        namespace,
        client.V1Deployment(
            metadata=client.V1ObjectMeta(name="web"),
            spec=client.V1DeploymentSpec(
                replicas=1,
                selector=client.V1LabelSelector(match_labels=labels),
                template=client.V1PodTemplateSpec(
                    metadata=client.V1ObjectMeta(labels=labels),
                    spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="nginx")]),
                ),
            ),
        ),
    )
    assert created.metadata.generation == 1
    created.spec.replicas = 3
    replaced = apps.replace_namespaced_deployment("web", namespace, created)
    assert (replaced.spec.replicas, replaced.metadata.generation) == (3, 2)
    with pytest.raises(ApiException) as stale:
        apps.replace_namespaced_deployment("web", namespace, created)
    assert stale.value.status == 409
    patched = apps.patch_namespaced_deployment("web", namespace, {"metadata": {"labels": {"patched": "yes"}}})
    assert patched.metadata.labels == {"patched": "yes"}
    assert [one.metadata.name for one in apps.list_namespaced_deployment(namespace).items] == ["web"]
    apps.delete_namespaced_deployment("web", namespace)
    with pytest.raises(ApiException) as caught:
        apps.read_namespaced_deployment("web", namespace)
    assert caught.value.status == 404


def test_list_and_watch(api: client.ApiClient, namespace: str) -> None:
    """A watch from a list's resourceVersion returns every later change once and in order."""
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, config_map("before"))
    listed = core.list_namespaced_config_map(namespace)
    core.create_namespaced_config_map(namespace, config_map("after"))
    core.patch_namespaced_config_map("before", namespace, {"data": {"name": "changed"}})
    core.delete_namespaced_config_map("after", namespace)
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=listed.metadata.resource_version,
        timeout_seconds=20,
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 3:
            watcher.stop()
    assert seen == [("ADDED", "after"), ("MODIFIED", "before"), ("DELETED", "after")]


def test_watch_selects(api: client.ApiClient, namespace: str) -> None:
    """An object that stops matching a watch's selector is DELETED in it, and one that begins to match is ADDED."""
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, config_map("one", tier="a"))
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.patch_namespaced_config_map("one", namespace, {"metadata": {"labels": {"tier": "b"}}})
    core.patch_namespaced_config_map("one", namespace, {"metadata": {"labels": {"tier": "a"}}})
    watcher = watch.Watch()
    seen = []
    for event in watcher.stream(
        core.list_namespaced_config_map,
        namespace,
        label_selector="tier=a",
        resource_version=version,
        timeout_seconds=20,
    ):
        seen.append(event["type"])
        if len(seen) == 2:
            watcher.stop()
    assert seen == ["DELETED", "ADDED"]


def test_watch_is_live(api: client.ApiClient, namespace: str) -> None:
    """A change is sent to an open watch without another request."""
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    writer = threading.Timer(0.2, core.create_namespaced_config_map, (namespace, config_map("late")))
    writer.start()
    began = time.monotonic()
    watcher = watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=20
    ):
        assert event["object"].metadata.name == "late"
        watcher.stop()
    writer.join()
    assert time.monotonic() - began < 5


def test_watch_ends_at_its_timeout(api: client.ApiClient, namespace: str) -> None:
    """timeoutSeconds ends a watch cleanly."""
    core = client.CoreV1Api(api)
    events = list(watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=1))
    assert events == []


def test_chunks(api: client.ApiClient, namespace: str) -> None:
    """limit and continue page through one snapshot, regardless of concurrent writes."""
    core = client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"cm-{number}"))
    page = core.list_namespaced_config_map(namespace, limit=2)
    assert page.metadata.remaining_item_count == 3
    core.create_namespaced_config_map(namespace, config_map("cm-9"))
    core.delete_namespaced_config_map("cm-4", namespace)
    names, version = [one.metadata.name for one in page.items], page.metadata.resource_version
    while page.metadata._continue:
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=page.metadata._continue)
        names += [one.metadata.name for one in page.items]
        assert page.metadata.resource_version == version
    assert names == [f"cm-{number}" for number in range(5)]


def test_expired(start_server: Callable[..., SubprocessServer]) -> None:
    """A watch from a compacted revision is 410 Expired, and a new list can be continued."""
    server = start_server("--controllers=", "--etcd-compaction-interval=1s", "--watch-cache=false")
    with config.new_client_from_config(str(server.kubeconfig)) as api:
        core = client.CoreV1Api(api)
        first = core.create_namespaced_config_map("default", config_map("first")).metadata.resource_version
        deadline = time.monotonic() + 30
        number = 0
        while True:
            number += 1
            core.create_namespaced_config_map("default", config_map(f"cm-{number}"))
            try:
                stream = watch.Watch().stream(
                    core.list_namespaced_config_map, "default", resource_version=first, timeout_seconds=1
                )
                list(stream)
            except ApiException as error:
                assert error.status == 410
                break
            assert time.monotonic() < deadline, "never compacted"
        listed = core.list_namespaced_config_map("default")
        assert len(listed.items) == number + 1
        core.delete_namespaced_config_map("first", "default")
        stream = watch.Watch().stream(
            core.list_namespaced_config_map,
            "default",
            resource_version=listed.metadata.resource_version,
            timeout_seconds=2,
        )
        assert [event["type"] for event in stream] == ["DELETED"]
