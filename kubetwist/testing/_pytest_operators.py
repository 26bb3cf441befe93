"""Part of the pytest plugin: operators of kopf, and webhooks that are Python functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._connection import Connection, ServerHandle
    from .kopfoperator import KopfOperator
    from .webhookservice import WebhookService


@pytest.fixture
def kopf_operator(request: pytest.FixtureRequest, kube_api: ServerHandle) -> Iterator[Callable[..., KopfOperator]]:
    """
    Return a function that makes L{KopfOperator}s for kube_api, with the arguments of its constructor.

    Paths are relative to the folder of the test. C{connection=} is another user. An operator that the test has started
    by C{start()} is stopped at its end.
    """
    from .kopfoperator import KopfOperator

    folder = Path(request.path).parent

    def resolve(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
        beside = folder / source
        return beside if os.fspath(source).endswith(".py") and beside.is_file() else source

    with ExitStack() as running:

        def make(
            *sources: str | os.PathLike[str], connection: Connection | None = None, **options: Any
        ) -> KopfOperator:
            operator = KopfOperator(connection or kube_api.connection, *map(resolve, sources), **options)
            running.callback(operator.stop)
            return operator

        yield make


@pytest.fixture
def webhook_server(kube_api: ServerHandle) -> Iterator[WebhookService]:
    """Serve Python functions as webhooks of kube_api: C{validating()}, C{mutating()} and C{conversion()}."""
    from .webhookservice import WebhookService

    with WebhookService(kube_api.connection) as service:
        yield service
