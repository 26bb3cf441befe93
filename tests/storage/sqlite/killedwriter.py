"""
The process that F{test_kill.py} kills: writes to a store and prints the acknowledged writes.

Usage: python killedwriter.py PATH WRITES WRITERS SEED
"""

from __future__ import annotations

import hashlib
import os
import random
import sys

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react

from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageError
from kubetwist.storage.sqlite import SQLiteStorage, _checkpoints


def value(random: random.Random) -> bytes:
    """Return a value that begins with its checksum."""
    content = random.randbytes(random.choice((0, 10, 1300, 1300, 1300, 9000)))
    return hashlib.sha256(content).digest() + content


def is_intact(value: bytes) -> bool:
    """Return whether a value matches its checksum."""
    return hashlib.sha256(value[32:]).digest() == value[:32]


def print_line(line: str) -> None:
    """Pass a line to the kernel before returning: the parent has received all lines that were written."""
    os.write(1, f"{line}\n".encode())


async def write(reactor: object, path: str, writes: int, writers: int, seed: int) -> None:
    """
    Write with many concurrent writers to separate keys, sometimes two per transaction.

    Compactions and checkpoints run all the time.
    """
    _checkpoints.CHECKPOINT_PAGES = 20
    storage = SQLiteStorage(path, reactor)  # type: ignore[arg-type]
    await storage.open()
    print_line(f"open {storage.revision}")

    async def writer(number: int) -> None:
        dice = random.Random(f"{seed} {number}")
        for _ in range(writes // writers):
            key = f"/r/{number}/{dice.randrange(5)}"
            dies = dice.random() < 0.2
            batch = [Write(key, None if dies else value(dice), None)]
            if dice.random() < 0.1 and not dies:
                batch.append(Write(f"{key}-twin", batch[0].value, None))
            try:
                revision = await storage.commit(batch)
            except StorageError:
                continue  # Nothing there to delete.
            for one in batch:
                checksum = "-" if one.value is None else one.value[:32].hex()
                print_line(f"done {revision} {one.key} {checksum}")

    async def compaction() -> None:
        # Unacknowledged writes must not be compacted: at most one of each writer.
        while working:
            await storage.compact(max(storage.revision - 2 * writers - 10, storage.compacted))
            await storage.commit([Write("/pause/a", b"", None)])

    working = True
    forgetting = Deferred.fromCoroutine(compaction())
    await gatherResults([Deferred.fromCoroutine(writer(number)) for number in range(writers)])
    working = False
    await forgetting
    await storage.close()
    print_line("finished")


if __name__ == "__main__":
    react(write, (sys.argv[1], *map(int, sys.argv[2:])))
