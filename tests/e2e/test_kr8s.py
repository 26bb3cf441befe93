"""Tests with C{kr8s}: asynchronous, untyped, driven by discovery."""

from __future__ import annotations

import asyncio

import kr8s.asyncio
from kr8s.asyncio.objects import ConfigMap, Deployment

from kubetwist.testing import SubprocessServer


def test_list(server: SubprocessServer, namespace: str) -> None:
    """Objects that kr8s creates are in its lists, with and without a selector."""

    async def run() -> None:
        api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
        for number in range(3):
            body = {
                "metadata": {"name": f"cm-{number}", "namespace": namespace, "labels": {"odd": str(number % 2)}},
                "data": {"number": str(number)},
            }
            await (await ConfigMap(body, api=api)).create()
        everything = [one.name async for one in api.get("configmaps", namespace=namespace)]
        assert [name for name in everything if name != "kube-root-ca.crt"] == ["cm-0", "cm-1", "cm-2"]
        odd = [one.name async for one in api.get("configmaps", namespace=namespace, label_selector={"odd": "1"})]
        assert odd == ["cm-1"]

    asyncio.run(run())


def test_watch(server: SubprocessServer, namespace: str) -> None:
    """kr8s' watch returns the existing objects and then the changes."""

    async def run() -> None:
        api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
        created = await ConfigMap({"metadata": {"name": "one", "namespace": namespace}, "data": {}}, api=api)
        await created.create()
        seen = []

        async def follow() -> None:
            async for kind, thing in api.watch("configmaps", namespace=namespace):
                if thing.name == "kube-root-ca.crt":
                    continue
                seen.append((kind, thing.name))
                if len(seen) == 1:
                    await created.patch({"data": {"k": "v"}})
                if len(seen) == 2:
                    await created.delete()
                if len(seen) == 3:
                    return

        await asyncio.wait_for(follow(), 20)
        assert seen == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]

    asyncio.run(run())


def test_scale(server: SubprocessServer, namespace: str) -> None:
    """kr8s scales a Deployment through its subresource."""

    async def run() -> None:
        api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
        labels = {"app": "web"}
        body = {
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
                },
            },
        }
        deployment = await Deployment(body, api=api)
        await deployment.create()
        await deployment.patch({"spec": {"replicas": 4}}, subresource="scale")
        await deployment.refresh()
        assert deployment.replicas == 4

    asyncio.run(run())
