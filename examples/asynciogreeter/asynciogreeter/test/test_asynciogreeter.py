"""Tests for the controller, with an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from asynciogreeter.controller import run


def greeted(kube_api: Any, name: str) -> None:
    """Create a ConfigMap, and wait for its greeting."""
    meta = {"name": name, "labels": {"greet": "yes"}}
    kube_api.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"name": name}}])
    kube_api.wait_for(f"configmaps/{name}", jsonpath=f"{{.data.greeting}}=Hello, {name}!")


def with_controller(kube_api: Any, test: Callable[[Any], None]) -> None:
    """Run a function, which blocks, beside the controller."""

    async def both() -> None:
        async with await kube_api.connection.kubernetes_asyncio() as api:
            controller = asyncio.create_task(run(api, "default"))
            try:
                await asyncio.to_thread(test, kube_api)
            finally:
                controller.cancel()
                await asyncio.gather(controller, return_exceptions=True)

    asyncio.run(both())


def test_greeting(kube_api_clean: Any) -> None:
    """Objects from before the start and new ones are greeted."""
    with_controller(kube_api_clean, lambda kube_api: [greeted(kube_api, name) for name in ("a", "b")])


def test_conflict(kube_api_clean: Any) -> None:
    """After a conflict the object is read again."""
    with kube_api_clean.inject(409, verb="update", resource="configmaps", times=2) as fault:
        with_controller(kube_api_clean, lambda kube_api: greeted(kube_api, "a"))
    assert fault.hits == 2


def test_ended_watch(kube_api_clean: Any) -> None:
    """After the end of a watch the controller lists again."""

    def end(kube_api: Any) -> None:
        greeted(kube_api, "a")
        kube_api.end_watches(410)
        greeted(kube_api, "b")

    with_controller(kube_api_clean, end)
