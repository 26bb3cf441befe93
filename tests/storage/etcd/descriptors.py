"""
The messages of etcd by tables, converted between the gateway's JSON and protobuf.

Tests build responses with them, and decode requests, independently of the tested code. Numbers, names and types
are etcd's; fields that are not listed are unknown.

@see: etcd-io/etcd, C{api/etcdserverpb/rpc.proto}, C{api/mvccpb/kv.proto}; protobuf's mapping to JSON.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Any, Final

from attrs import frozen

from kubetwist.api.jsontypes import JSONObject
from kubetwist.schema.protobuf.fields import number
from kubetwist.schema.protobuf.wire import (
    LENGTH,
    VARINT,
    int64,
)
from kubetwist.storage.etcd._messages import scan

_UINT64: Final = (1 << 64) - 1

# Each line has a message, and its fields: number, name, type. A star marks repeated fields.
_MESSAGES: Final = """
ResponseHeader 1:cluster_id:uint64 2:member_id:uint64 3:revision:int64 4:raft_term:uint64
KeyValue 1:key:bytes 2:create_revision:int64 3:mod_revision:int64 4:version:int64 5:value:bytes 6:lease:int64
RangeRequest 1:key:bytes 2:range_end:bytes 3:limit:int64 4:revision:int64 5:sort_order:SortOrder
 6:sort_target:SortTarget 7:serializable:bool 8:keys_only:bool 9:count_only:bool 10:min_mod_revision:int64
 11:max_mod_revision:int64 12:min_create_revision:int64 13:max_create_revision:int64
RangeResponse 1:header:ResponseHeader 2:kvs:*KeyValue 3:more:bool 4:count:int64
PutRequest 1:key:bytes 2:value:bytes 3:lease:int64 4:prev_kv:bool 5:ignore_value:bool 6:ignore_lease:bool
PutResponse 1:header:ResponseHeader 2:prev_kv:KeyValue
DeleteRangeRequest 1:key:bytes 2:range_end:bytes 3:prev_kv:bool
DeleteRangeResponse 1:header:ResponseHeader 2:deleted:int64 3:prev_kvs:*KeyValue
RequestOp 1:request_range:RangeRequest 2:request_put:PutRequest 3:request_delete_range:DeleteRangeRequest
ResponseOp 1:response_range:RangeResponse 2:response_put:PutResponse 3:response_delete_range:DeleteRangeResponse
Compare 1:result:CompareResult 2:target:CompareTarget 3:key:bytes 4:version:int64! 5:create_revision:int64!
 6:mod_revision:int64! 7:value:bytes! 8:lease:int64!
TxnRequest 1:compare:*Compare 2:success:*RequestOp 3:failure:*RequestOp
TxnResponse 1:header:ResponseHeader 2:succeeded:bool 3:responses:*ResponseOp
LeaseGrantRequest 1:TTL:int64 2:ID:int64
LeaseGrantResponse 1:header:ResponseHeader 2:ID:int64 3:TTL:int64 4:error:string
LeaseRevokeRequest 1:ID:int64
LeaseRevokeResponse 1:header:ResponseHeader
LeaseTimeToLiveRequest 1:ID:int64 2:keys:bool
LeaseTimeToLiveResponse 1:header:ResponseHeader 2:ID:int64 3:TTL:int64 4:grantedTTL:int64 5:keys:*bytes
StatusRequest
WatchCreateRequest 1:key:bytes 2:range_end:bytes 3:start_revision:int64 4:progress_notify:bool 5:filters:bytes
 6:prev_kv:bool 7:watch_id:int64 8:fragment:bool
WatchRequest 1:create_request:WatchCreateRequest
StatusResponse 1:header:ResponseHeader 2:version:string 3:dbSize:int64 4:leader:uint64 5:raftIndex:uint64
 6:raftTerm:uint64 7:raftAppliedIndex:uint64 8:errors:*string 9:dbSizeInUse:int64 10:isLearner:bool
"""

_ENUMS: Final = {
    "SortOrder": ("NONE", "ASCEND", "DESCEND"),
    "SortTarget": ("KEY", "VERSION", "CREATE", "MOD", "VALUE"),
    "CompareResult": ("EQUAL", "GREATER", "LESS", "NOT_EQUAL"),
    "CompareTarget": ("VERSION", "CREATE", "MOD", "VALUE", "LEASE"),
}


@frozen
class Field:
    """
    A field of a message.

    @ivar kind: C{bytes}, C{string}, C{bool}, C{int64}, C{uint64}, or the name of an enumeration or message.
    @ivar chosen: Whether it is a member of a C{oneof}: then 0 is encoded, too.
    """

    number: int
    name: str
    kind: str
    repeated: bool
    chosen: bool

    @property
    def tag(self) -> int:
        """Return number and wire type."""
        counted = self.kind in _MESSAGE_FIELDS or self.kind in ("bytes", "string")
        return self.number << 3 | (LENGTH if counted else VARINT)


def _fields(text: str) -> dict[str, list[Field]]:
    messages = {}
    for line in text.replace("\n ", " ").split("\n"):
        if line:
            name, *parts = line.split()
            split = [part.split(":") for part in parts]
            messages[name] = [
                Field(int(position), field, kind.strip("*!"), kind[:1] == "*", kind[-1:] == "!")
                for position, field, kind in split
            ]
    return messages


_MESSAGE_FIELDS: Final = _fields(_MESSAGES)
_BY_NAME: Final = {
    name: {field.name: (field, number(field.tag)) for field in fields} for name, fields in _MESSAGE_FIELDS.items()
}
_BY_TAG: Final = {name: {field.tag: field for field in fields} for name, fields in _MESSAGE_FIELDS.items()}


def encode(message: str, value: JSONObject) -> bytes:
    """
    Encode a message.

    @raise ValueError: A field is unknown, or has a wrong type.
    """
    parts: list[bytes] = []
    fields = _BY_NAME[message]
    for name, content in value.items():
        try:
            field, tag = fields[name]
        except KeyError:
            raise ValueError(f"etcd's {message} has no {name}") from None
        for item in content if field.repeated else (content,):
            if item is None:
                continue
            if field.kind in _MESSAGE_FIELDS:
                data = encode(field.kind, item)
            elif field.kind == "bytes":
                data = a2b_base64(item, strict_mode=True)
            elif field.kind == "string":
                data = item.encode()
            else:
                what = _ENUMS[field.kind].index(item) if field.kind in _ENUMS else int(item)
                if what or field.chosen:
                    parts += (tag, number(what & _UINT64))
                continue
            if data or field.chosen or field.repeated or field.kind in _MESSAGE_FIELDS:
                parts += (tag, number(len(data)), data)
    return b"".join(parts)


def decode(message: str, data: bytes) -> JSONObject:
    """
    Decode a message to the gateway's JSON: fields that are 0, empty or false are omitted.

    @raise ProtocolError: It is malformed.
    """
    return _decode(message, data, 0, len(data))


def _decode(message: str, data: bytes, start: int, stop: int) -> JSONObject:
    fields = _BY_TAG[message]
    found: dict[str, Any] = {}
    for tag, value, end in scan(data, start, stop):
        field = fields.get(tag)
        if field is None:
            continue
        kind = field.kind
        item: Any
        if kind in _MESSAGE_FIELDS:
            item = _decode(kind, data, value, end)
        elif kind == "bytes":
            item = b2a_base64(data[value:end], newline=False).decode("ascii")
        elif kind == "string":
            item = data[value:end].decode("utf-8", "replace")
        elif kind == "bool":
            item = bool(value)
        elif kind in _ENUMS:
            item = _ENUMS[kind][value] if value < len(_ENUMS[kind]) else str(value)
        else:
            item = str(int64(value) if kind == "int64" else value)
        if field.repeated:
            found.setdefault(field.name, []).append(item)
        else:
            found[field.name] = item
    return found
