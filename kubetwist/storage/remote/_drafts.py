"""
The drafts that are attached to writes, for other front processes, which need not decode the values then.

The body of a draft is a part of its value. So only its position, the labels and the fields are passed with the write.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from ...api.record import ITEM_START, Draft
from ...api.storage import Write
from ._frames import ProtocolError

#: What follows the body of a draft in a value.
_END: Final = b"\n"


def encode_draft(write: Write) -> bytes:
    """
    Encode the draft that is attached to a write, without its body.

    @return: The encoded draft; nothing if there is none, or if the value does not contain the body, because it is
        encrypted or has another format.
    """
    draft, value = write.attachment, write.value
    if type(draft) is not Draft or value is None or not value.endswith(draft.body[1:] + _END):
        return b""
    try:
        return orjson.dumps([len(value) - len(draft.body), draft.labels, draft.fields])
    except TypeError:
        return b""


def decode_draft(data: bytes, value: bytes) -> Draft:
    """
    Return the draft of a value.

    @raise ProtocolError: The data are malformed, or do not match the value.
    """
    try:
        found: Any = orjson.loads(data)
        start, labels, fields = found
        body = b"{" + value[start : -len(_END)]
        if type(labels) is dict and type(fields) is dict and type(start) is int and body.startswith(ITEM_START):
            return Draft(body, labels, fields)
    except (ValueError, TypeError):
        pass
    raise ProtocolError("a draft does not match its value")
