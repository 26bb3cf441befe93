"""
A process that writes to a journal until it is killed.

C{python -m journalstore.test.writer PATH} prints C{open REVISION}, and C{KEY REVISION} for each acknowledged write.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from journalstore.backend import JournalStorage
from kubetwist.api.storage import Write
from kubetwist.testing.storage import StorageReactor

KEYS = 50


def value_of(key: str, number: int) -> bytes:
    """Return a value that shows whether it is complete."""
    return f"{key} {number} ".encode() * (1 + number % 200) + b"end"


def main(path: str) -> None:
    """Write several keys at a time, and compact often."""
    reactor = StorageReactor()
    storage = JournalStorage(Path(path), reactor)
    reactor.run(storage.open())
    print("open", storage.revision, flush=True)
    for number in count():
        keys = [f"/r/{(number + step) % KEYS}" for step in range(5)]
        answers = [storage.commit([Write(key, value_of(key, number), None)]) for key in keys]
        for key, answer in zip(keys, answers, strict=True):
            print(key, reactor.run(answer), flush=True)
        if number % 100 == 99:
            reactor.run(storage.compact(storage.revision - 10))


if __name__ == "__main__":
    main(*sys.argv[1:])
