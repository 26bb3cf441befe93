"""Messages of etcd."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import strategies as st

keys = st.binary(min_size=1, max_size=12)


def text(data: bytes) -> str:
    """Encode bytes in base64."""
    return b64encode(data).decode()
