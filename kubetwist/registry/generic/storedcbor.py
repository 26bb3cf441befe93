"""The codec of custom resources that are stored as CBOR, as kube-apiserver stores them behind a feature gate."""

from __future__ import annotations

import orjson

from ...api.cbor import encode_cbor
from ...api.resource import GroupVersionKind


class StoredCBOR:
    """The codec of objects that are stored as CBOR."""

    def encode(self, gvk: GroupVersionKind, body: bytes) -> bytes:
        """
        Encode an object.

        @param body: The object as JSON, without kind and apiVersion.
        """
        return encode_cbor({"kind": gvk.kind, "apiVersion": gvk.api_version, **orjson.loads(body)})
