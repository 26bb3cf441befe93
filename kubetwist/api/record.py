"""Objects in the watch cache, and lists of them: JSON, labels, and the fields of field selectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

import orjson
from attrs import define

from .garbage import untrack
from .resource import JSONObject

#: The first bytes of each record's JSON; the revision is inserted after them.
ITEM_START: Final = b'{"metadata":{'
NO_LABELS: Final[Mapping[str, str]] = {}


class Draft:
    """
    An object without a revision: an attachment for L{kubetwist.api.storage.Write}.

    @ivar body: The object's compact JSON without C{kind}, C{apiVersion} and C{metadata.resourceVersion};
        it starts with L{ITEM_START} and C{metadata} is not empty.
    @ivar labels: Its labels.
    @ivar fields: Its values of the selectable fields besides name and namespace.
    @ivar value: Its stored form, if that was encoded before the write; L{None} otherwise.
    """

    __slots__ = ("body", "fields", "labels", "value")

    def __init__(self, body: bytes, labels: Mapping[str, str], fields: Mapping[str, str]) -> None:
        self.body = body
        self.labels = labels
        self.fields = fields
        self.value: bytes | None = None


class Record:
    """
    One stored object at one revision; immutable except C{views} and C{encodings}.

    The garbage collector does not visit records: there may be millions. So a view or encoding must not refer to its
    record.

    @ivar key: Below the resource's prefix: C{"default/web-0"}, or C{"node-1"} when cluster-scoped.
    @ivar revision: The revision of its newest write; in a DELETED event, the revision of the deletion.
    @ivar item: The object's compact JSON without C{kind} and C{apiVersion}:
        C{b'{"metadata":{"resourceVersion":"7","name":...},...}'}.
    @ivar views: Values cached by encoders, by encoder; L{None} until there is one.
    @ivar encodings: Its forms in other media types, by encoder, once a client has asked for them; L{None} before. The
        cache may drop them at any time.
    @ivar stale_format: Whether it is stored in another encoding than this server writes, JSON or protobuf.
    """

    stale_format: ClassVar[bool] = False

    __slots__ = ("encodings", "fields", "item", "key", "labels", "name", "namespace", "revision", "views")

    def __init__(
        self, key: str, revision: int, item: bytes, labels: Mapping[str, str], fields: Mapping[str, str]
    ) -> None:
        self.key = key
        self.revision = revision
        self.item = item
        self.labels = labels
        self.fields = fields
        self.namespace, _, self.name = key.rpartition("/")
        self.views: dict[Any, Any] | None = None
        self.encodings: dict[object, bytes] | None = None
        untrack(self)

    @classmethod
    def from_draft(cls, key: str, revision: int, draft: Draft) -> Record:
        """Return the record that a draft becomes when it is committed."""
        item = b'%b"resourceVersion":"%d",%b' % (ITEM_START, revision, draft.body[len(ITEM_START) :])
        return cls(key, revision, item, draft.labels, draft.fields)

    @classmethod
    def from_object(cls, obj: JSONObject, revision: int) -> Record:
        """
        Return the record of an object that is not in a store of this package.

        @param obj: The object; it must not have a resourceVersion yet.
        @param revision: The revision of its newest write, at least 1.
        """
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        return cls.from_draft(key, revision, Draft(without_kind(obj), meta.get("labels") or {}, {}))

    def body(self) -> bytes:
        """Return the JSON without the revision: a L{Draft}'s C{body}."""
        return ITEM_START + self.item[len(ITEM_START) + len('"resourceVersion":"",') + len(str(self.revision)) :]

    def deleted_at(self, revision: int) -> Record:
        """Return the record as its DELETED event shows it: this state, at the revision of the deletion."""
        return Record.from_draft(self.key, revision, Draft(self.body(), self.labels, self.fields))


class StaleFormatRecord(Record):
    """A record that an update rewrites even if it changes nothing."""

    __slots__ = ()
    stale_format = True


def without_kind(obj: JSONObject) -> bytes:
    """Encode an object as in records: metadata and its resourceVersion first, without kind and apiVersion."""
    meta = obj.get("metadata") or {}
    version = meta.get("resourceVersion")
    ordered: JSONObject = {"metadata": {"resourceVersion": version, **meta} if version else meta}
    for name, value in obj.items():
        if name not in ("metadata", "kind", "apiVersion"):
            ordered[name] = value
    return orjson.dumps(ordered)


class RecordBlock(Protocol):
    """
    Some consecutive records of a list.

    It may keep their forms: values that an encoder computes from all of them, such as their joined JSON. What was
    kept is dropped when a record changes.
    """

    @property
    def records(self) -> Sequence[Record]:
        """Return the records in key order; callers do not change them."""

    def get(self, key: object) -> Any | None:
        """Return the form with this key, if it is kept."""

    def admits(self, key: object, size: int) -> bool:
        """Return whether a form of C{size} bytes would be kept."""

    def keep(self, key: object, value: Any, size: int) -> None:
        """Keep a form of C{size} bytes."""


class PlainBlock:
    """Some consecutive records of a list, without forms; see L{RecordBlock}."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def get(self, key: object) -> Any | None:
        """Return nothing."""
        return None

    def admits(self, key: object, size: int) -> bool:
        """Return false."""
        return False

    def keep(self, key: object, value: Any, size: int) -> None:
        """Keep nothing."""


@define(slots=True, eq=False)
class Listing:
    """
    The result of a list.

    @ivar records: The records in key order; the caller owns the list.
    @ivar revision: The revision of the list.
    @ivar next_key: The C{start_after} of the next page; C{""} for the last page.
    @ivar remaining: The number of records that follow, if known: L{None} for the last page and for lists with a match.
    @ivar cached: Whether the list was read from the cache instead of the backend.
    @ivar blocks: The same records in blocks; empty if they are not consecutive records of a cache.
    """

    records: list[Record]
    revision: int
    next_key: str = ""
    remaining: int | None = None
    cached: bool = True
    blocks: Sequence[RecordBlock] = ()

    def in_blocks(self) -> Sequence[RecordBlock]:
        """Return the records in blocks: L{blocks}, or one block of all records."""
        return self.blocks or [PlainBlock(self.records)]
