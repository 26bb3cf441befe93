"""
The slow part of a first start, an RSA key, made in a thread while modules are imported.

A key that was begun belongs to the next one who takes one; each is given once.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue

from cryptography.hazmat.primitives.asymmetric import rsa

_lock = threading.Lock()
_coming: list[SimpleQueue[rsa.RSAPrivateKey | None]] = []


def _make() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def begin_key() -> None:
    """Begin with a key that somebody will take soon, unless one is on its way."""

    def run() -> None:
        key = None
        try:
            key = _make()
        finally:
            made.put(key)

    with _lock:
        if _coming:
            return
        made: SimpleQueue[rsa.RSAPrivateKey | None] = SimpleQueue()
        _coming.append(made)
    threading.Thread(target=run, name="kubetwist key", daemon=True).start()


def take_key() -> rsa.RSAPrivateKey:
    """A new key: the one that was begun, or one that is made now."""
    with _lock:
        made = _coming.pop() if _coming else None
    key = None if made is None else made.get()
    return _make() if key is None else key
