"""A storage process that L{tests.storage.remote.test_kill} kills: serves the store in a directory."""

from __future__ import annotations

import sys
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from kubetwist.storage.remote import StorageServer
from kubetwist.storage.sqlite import SQLiteStorage


async def serve(reactor: Any, directory: str) -> None:
    """Serve until the process is killed."""
    storage = SQLiteStorage(f"{directory}/store", reactor)
    await storage.open()
    server = StorageServer(storage, reactor)
    await server.start()
    server.listen(reactor, directory)
    await Deferred()


if __name__ == "__main__":
    react(lambda reactor: Deferred.fromCoroutine(serve(reactor, sys.argv[1])))
