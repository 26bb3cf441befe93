"""
The process that F{test_history.py} kills: clients of a store that print their requests and responses.

Usage: python historywriter.py PATH SEED RESUME, where RESUME is the revision from which the watch resumes.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react
from zope.interface import implementer

from kubetwist.api.storage import (
    StorageEvent,
    Write,
)
from kubetwist.interfaces import IStorageObserver
from kubetwist.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from kubetwist.storage.sqlite import SQLiteStorage

CLIENTS = 8
KEYS = [f"/r/{number}" for number in range(6)]


def print_line(*parts: Any) -> None:
    """Pass a line to the kernel before returning."""
    os.write(1, json.dumps([time.monotonic(), *parts]).encode() + b"\n")


@implementer(IStorageObserver)
class PrintingObserver:
    """Prints the events of a watch."""

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        for event in events:
            kind = "DELETED" if event.value is None else "MODIFIED" if event.previous else "ADDED"
            print_line("event", kind, event.key, event.revision, (event.value or b"").partition(b" ")[0].decode())

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""
        print_line("progress", revision)

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}."""
        print_line("ended", str(reason))


async def work(reactor: object, path: str, seed: int, resume: int) -> None:
    """Write with several concurrent clients until killed; compact revisions that all clients have observed."""
    storage = SQLiteStorage(path, reactor)  # type: ignore[arg-type]
    await storage.open()
    print_line("watch", resume or storage.revision)
    await storage.watch("/r/", resume or storage.revision, PrintingObserver())

    async def client(number: int) -> None:
        dice = random.Random(f"{seed} {number}")
        known: dict[str, int] = {}
        for count in range(1 << 30):
            name = f"c{number}"
            if dice.random() < 0.1:
                print_line("begin", name, "list", "/r/", "", None)
                page = await storage.read_page("/r/")
                known = {item.key: item.revision for item in page.items}
                items = {item.key: (item.revision, item.value.partition(b" ")[0].decode()) for item in page.items}
                print_line("listed", name, page.revision, items)
                continue
            key = dice.choice(KEYS)
            dies = key in known and dice.random() < 0.2
            value = "" if dies else f"{name}-{seed}-{count}"
            action = "delete" if dies else "update" if key in known else "create"
            expected = known.get(key)
            print_line("begin", name, action, key, value, expected)
            pad = b" " + bytes(dice.choice((0, 100, 9000)))
            try:
                revision = await storage.commit([Write(key, None if dies else value.encode() + pad, expected or 0)])
            except (KeyExists, KeyNotFound, RevisionConflict) as refusal:
                print_line("refused", name, type(refusal).__name__)
                result = getattr(refusal, "revision", 0)
                known.pop(key, None)
                if result and not isinstance(refusal, KeyNotFound):
                    known[key] = result
                continue
            print_line("done", name, revision)
            known[key] = revision
            if dies:
                del known[key]

    async def compaction() -> None:
        while True:
            await storage.compact(max(storage.revision - 200, storage.compacted))
            await storage.commit([Write("/pause/a", b"", None)])

    print_line("open", storage.revision)
    await gatherResults([Deferred.fromCoroutine(one) for one in (compaction(), *map(client, range(CLIENTS)))])


if __name__ == "__main__":
    react(work, (sys.argv[1], *map(int, sys.argv[2:])))
