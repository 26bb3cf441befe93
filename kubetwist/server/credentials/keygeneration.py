"""
Generate an RSA key, the slow part of a first start, in a thread while modules are imported.

The next caller of L{take_key} gets the key; each key is returned once.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue

from cryptography.hazmat.primitives.asymmetric import rsa

_lock = threading.Lock()
_pending: list[SimpleQueue[rsa.RSAPrivateKey | None]] = []


def _make() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def begin_key() -> None:
    """Start to generate a key, unless one is being generated."""

    def run() -> None:
        key = None
        try:
            key = _make()
        finally:
            queue.put(key)

    with _lock:
        if _pending:
            return
        queue: SimpleQueue[rsa.RSAPrivateKey | None] = SimpleQueue()
        _pending.append(queue)
    threading.Thread(target=run, name="kubetwist key", daemon=True).start()


def take_key() -> rsa.RSAPrivateKey:
    """Return a new key: the one whose generation was started, or one that is generated now."""
    with _lock:
        queue = _pending.pop() if _pending else None
    key = None if queue is None else queue.get()
    return _make() if key is None else key
