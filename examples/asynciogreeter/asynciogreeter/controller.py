"""The controller."""

from __future__ import annotations

import asyncio
from typing import Any

from kubernetes_asyncio import client, watch

SELECTOR = "greet=yes"


async def greet(core: client.CoreV1Api, config_map: Any) -> None:
    """Set data.greeting of a ConfigMap; read it again after a conflict."""
    meta = config_map.metadata
    while True:
        data = config_map.data or {}
        greeting = f"Hello, {data.get('name')}!"
        if data.get("greeting") == greeting:
            return
        config_map.data = {**data, "greeting": greeting}
        try:
            await core.replace_namespaced_config_map(meta.name, meta.namespace, config_map)
        except client.ApiException as error:
            if error.status == 404:
                return
            if error.status != 409:
                raise
            config_map = await core.read_namespaced_config_map(meta.name, meta.namespace)


async def run(api: client.ApiClient, namespace: str) -> None:
    """Greet in all selected ConfigMaps of a namespace until cancelled; list again when the watch ends."""
    core = client.CoreV1Api(api)
    while True:
        try:
            listed = await core.list_namespaced_config_map(namespace, label_selector=SELECTOR)
            for config_map in listed.items:
                await greet(core, config_map)
            version = listed.metadata.resource_version
            async with watch.Watch().stream(
                core.list_namespaced_config_map, namespace, label_selector=SELECTOR, resource_version=version
            ) as events:
                async for event in events:
                    if event["type"] in ("ADDED", "MODIFIED"):
                        await greet(core, event["object"])
        except (client.ApiException, OSError):
            await asyncio.sleep(0.1)
