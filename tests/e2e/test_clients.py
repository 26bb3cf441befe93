"""Tests that each client library uses the identity of a connection, in each kind of server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI, Connection, SubprocessServer

CONFIG_MAPS = "/api/v1/namespaces/dev/configmaps"


@pytest.fixture(scope="module", params=[ChildKubeAPI, SubprocessServer], ids=["child", "process"])
def identities(request: pytest.FixtureRequest) -> Iterator[dict[str, Connection]]:
    """Connections to a server of each kind, where alice and a robot may read the config map C{mine}, and no more."""
    with request.param() as server:
        admin = server.connection
        robot = admin.as_service_account("dev", "robot", create=True)
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
        for path, body in (
            ("/apis/rbac.authorization.k8s.io/v1/namespaces/dev/roles", {"rules": [rule]}),
            (
                "/apis/rbac.authorization.k8s.io/v1/namespaces/dev/rolebindings",
                {
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "mine"},
                    "subjects": [
                        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"},
                        {"kind": "ServiceAccount", "name": "robot", "namespace": "dev"},
                    ],
                },
            ),
            (CONFIG_MAPS, {"data": {"k": "v"}}),
        ):
            code, created = admin.request("POST", path, {"metadata": {"name": "mine"}, **body})
            assert code == 201, created
        yield {"alice": admin.as_user("alice", ["readers"]), "robot": robot}


def test_request(identities: dict[str, Connection]) -> None:
    """C{request} has the identity."""
    for connection in identities.values():
        assert connection.request("GET", f"{CONFIG_MAPS}/mine")[0] == 200
        code, status = connection.request("DELETE", f"{CONFIG_MAPS}/mine")
        assert code == 403
        assert status["reason"] == "Forbidden"


def test_kubernetes(identities: dict[str, Connection]) -> None:
    """The client of C{kubernetes} has the identity."""
    client = pytest.importorskip("kubernetes.client")
    for connection in identities.values():
        with connection.kubernetes() as api:
            core = client.CoreV1Api(api)
            assert core.read_namespaced_config_map("mine", "dev").data == {"k": "v"}
            with pytest.raises(client.ApiException) as refused:
                core.delete_namespaced_config_map("mine", "dev")
            assert refused.value.status == 403


@pytest.mark.parametrize(
    ("module", "factory"),
    [
        ("kubernetes_asyncio.client", Connection.kubernetes_asyncio),
        ("kubernetes.aio.client", Connection.kubernetes_aio),
    ],
    ids=["kubernetes_asyncio", "kubernetes.aio"],
)
def test_kubernetes_asyncio(
    identities: dict[str, Connection], module: str, factory: Callable[[Connection], Awaitable[Any]]
) -> None:
    """The clients for asyncio have the identity."""
    client = pytest.importorskip(module)

    async def run(connection: Connection) -> None:
        async with await factory(connection) as api:
            core = client.CoreV1Api(api)
            assert (await core.read_namespaced_config_map("mine", "dev")).data == {"k": "v"}
            with pytest.raises(client.ApiException) as refused:
                await core.delete_namespaced_config_map("mine", "dev")
            assert refused.value.status == 403

    for connection in identities.values():
        asyncio.run(run(connection))


def test_kr8s(identities: dict[str, Connection]) -> None:
    """The client of kr8s has the identity."""
    kr8s = pytest.importorskip("kr8s")
    for connection in identities.values():
        found = kr8s.objects.ConfigMap.get("mine", namespace="dev", api=connection.kr8s())
        assert found.data == {"k": "v"}
        with pytest.raises(kr8s.ServerError) as refused:
            found.delete()
        assert refused.value.response.status_code == 403


def test_kr8s_async(identities: dict[str, Connection]) -> None:
    """The client of kr8s for asyncio has the identity."""
    kr8s = pytest.importorskip("kr8s")
    objects = pytest.importorskip("kr8s.asyncio.objects")

    async def run(connection: Connection) -> None:
        found = await objects.ConfigMap.get("mine", namespace="dev", api=await connection.kr8s_async())
        assert found.data == {"k": "v"}
        with pytest.raises(kr8s.ServerError) as refused:
            await found.delete()
        assert refused.value.response.status_code == 403

    for connection in identities.values():
        asyncio.run(run(connection))


def test_lightkube(identities: dict[str, Connection]) -> None:
    """The client of lightkube has the identity."""
    lightkube = pytest.importorskip("lightkube")
    resources = pytest.importorskip("lightkube.resources.core_v1")
    for connection in identities.values():
        client = connection.lightkube()
        assert client.get(resources.ConfigMap, "mine", namespace="dev").data == {"k": "v"}
        with pytest.raises(lightkube.ApiError) as refused:
            client.delete(resources.ConfigMap, "mine", namespace="dev")
        assert refused.value.status.code == 403


def test_lightkube_async(identities: dict[str, Connection]) -> None:
    """The client of lightkube for asyncio has the identity."""
    lightkube = pytest.importorskip("lightkube")
    resources = pytest.importorskip("lightkube.resources.core_v1")

    async def run(connection: Connection) -> None:
        client = connection.lightkube_async()
        assert (await client.get(resources.ConfigMap, "mine", namespace="dev")).data == {"k": "v"}
        with pytest.raises(lightkube.ApiError) as refused:
            await client.delete(resources.ConfigMap, "mine", namespace="dev")
        assert refused.value.status.code == 403
        await client.close()

    for connection in identities.values():
        asyncio.run(run(connection))


def test_pykube(identities: dict[str, Connection]) -> None:
    """The client of pykube-ng has the identity."""
    pykube = pytest.importorskip("pykube")
    for connection in identities.values():
        found = pykube.ConfigMap.objects(connection.pykube()).filter(namespace="dev").get_by_name("mine")
        assert found.obj["data"] == {"k": "v"}
        with pytest.raises(pykube.exceptions.HTTPError) as refused:
            found.delete()
        assert refused.value.code == 403


def test_kopf(identities: dict[str, Connection]) -> None:
    """The connection of kopf has the identity: a certificate, or a token."""
    pytest.importorskip("kopf")
    alice, robot = identities["alice"].kopf(), identities["robot"].kopf()
    assert alice.certificate_data == identities["alice"].client_certificate.encode()
    assert alice.token is None
    assert (robot.token, robot.certificate_data) == (identities["robot"].token, None)
    assert robot.default_namespace == "dev"
