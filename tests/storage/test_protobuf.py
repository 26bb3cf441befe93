"""
Tests for L{kubetwist.storage.protobuf} and L{kubetwist.registry.generic.storedprotobuf}, and of caches that they fill.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.api.storage import (
    StoredValue,
    Write,
)
from kubetwist.registry.generic.storedprotobuf import decode_stored
from kubetwist.schema.definitions import Definitions
from kubetwist.storage.cache.corruptobjects import record_of
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.errors import CorruptObjectError, UnknownFormatError
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.protobuf import MAX_TURN_COST, is_protobuf, portions
from tests.schema.protobuf.encoder import (
    delimited,
    enveloped,
    number,
)

#: A config map as kube-apiserver keeps it, octet by octet: C{kind: ConfigMap}, C{metadata.name: a}, what Go writes
#: though it is empty, C{creationTimestamp: 2026-11-01T10:00:00Z}, and C{data: {k: v}}.
CONFIG_MAP = bytes.fromhex(
    "6b387300"  # k8s, zero
    "0a0f" "0a027631" "1209436f6e6669674d6170"  # typeMeta: v1, ConfigMap
    "122b"  # raw
    "0a21"  # metadata
    "0a0161" "1200" "1a0764656661756c74" "2200" "2a0175" "3200" "3800" "4208" "08a09b9cd706" "1000"
    "1206" "0a016b" "120176"  # data
    "1a00" "2200"  # contentEncoding, contentType
)  # fmt: skip


@cache
def definitions() -> Definitions:
    """Return the types of one release."""
    return Definitions.load("1.36")


def stored(name: str, raw: bytes = b"", api_version: str = "v1", kind: str = "ConfigMap") -> bytes:
    """Return an object in its stored form."""
    return enveloped(api_version, kind, delimited(1, delimited(1, name)) + raw)


class DecodingTests(SynchronousTestCase):
    """Tests for L{decode_stored}."""

    def read(self, value: bytes) -> Any:
        """Return the object in a value."""
        return decode_stored(definitions(), value)

    def test_as_kube_apiserver_writes_it(self) -> None:
        """A value of etcd is decoded to the same object as JSON, without fields that Go omits."""
        meta = {"name": "a", "namespace": "default", "uid": "u", "creationTimestamp": "2026-11-01T10:00:00Z"}
        self.assertEqual(
            self.read(CONFIG_MAP), {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"k": "v"}}
        )

    def test_foreign(self) -> None:
        """Unknown kinds and versions are named in the error, shortened if they are long."""
        for api_version, kind, message in (
            ("v1", "Swan", "it is a Swan of v1, which is not known here"),
            ("apps/v1beta2", "Deployment", "it is a Deployment of apps/v1beta2, which is not known here"),
            ("a/b/c", "Pod", "it is a Pod of a/b/c, which is not known here"),
            ("v1", "\x1b[2J", 'it is a "\\x1b[2J" of v1, which is not known here'),
            ("v1", "", "it is a  of v1, which is not known here"),
        ):
            error = self.assertRaises(UnknownFormatError, self.read, stored("a", b"", api_version, kind))
            self.assertEqual(str(error), message)
        error = self.assertRaises(UnknownFormatError, self.read, stored("a", b"", "v1", "K" * 1_000_000))
        self.assertLess(len(str(error)), 200)

    def test_nameless(self) -> None:
        """A value without content except its kind is rejected."""
        for raw in (b"", delimited(1), delimited(2, delimited(1, "k"))):
            error = self.assertRaises(UnknownFormatError, self.read, enveloped("v1", "ConfigMap", raw))
            self.assertEqual(str(error), "it is a ConfigMap without a name")

    def test_damaged(self) -> None:
        """Truncated, too long, too deep and wrongly typed values are rejected; the error does not quote the value."""
        deep = b"[" * 500 + b"]" * 500
        managers = delimited(17, delimited(7, delimited(1, deep)))
        for value in (
            b"k8s\0",
            b"k8s\0\x12\xff\xff\xff\xff\x7f",
            enveloped("v1", "ConfigMap", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            enveloped("v1", "ConfigMap", number(1, 7)),
            enveloped(
                "v1",
                "Pod",
                delimited(1, delimited(1, "p")) + delimited(2, delimited(2, number(6, 1))),
            ),
            enveloped("v1", "ConfigMap", delimited(1, delimited(1, "hunter2"), managers)),
            stored("hunter2", b"\xff" * 20),
            b"k8s\0" + b"\x0b" * 5000,
        ):
            with self.subTest(value=value[:40]):
                item = StoredValue("/registry/configmaps/default/a", value, 7)
                error = self.assertRaises(CorruptObjectError, record_of, item, lambda _, data, __: self.read(data), 0)
                self.assertIn('key "/registry/configmaps/default/a"', str(error))
                self.assertIn("damaged protobuf", str(error))
                self.assertNotIn("hunter2", str(error))

    @given(st.integers(0, len(CONFIG_MAP) - 1), st.integers(0, 255))
    def test_octets(self, at: int, octet: int) -> None:
        """With any one byte changed, a value is decoded or rejected with the usual error."""
        value = bytearray(CONFIG_MAP)
        value[at] = octet
        for one in (bytes(value), CONFIG_MAP[:at]):
            try:
                obj = self.read(one)
            except (UnknownFormatError, ValueError):
                continue
            self.assertTrue(obj["metadata"]["name"])


class PortionTests(SynchronousTestCase):
    """Batches of values."""

    @given(st.lists(st.sampled_from([b"{}", b"k8s\0" + b"x" * (MAX_TURN_COST // 3), b"k8s\0" + b"x" * MAX_TURN_COST])))
    def test_all(self, values: list[bytes]) -> None:
        """Batches contain all values, and none is too large unless a single value is."""
        items = [StoredValue(str(at), value, at) for at, value in enumerate(values)]
        result = [list(portion) for portion in portions(items)]
        self.assertEqual([item for portion in result for item in portion], items)
        for portion in result:
            sizes = [len(item.value) for item in portion if is_protobuf(item.value)]
            self.assertLess(sum(sizes[:-1]), MAX_TURN_COST)

    def test_json(self) -> None:
        """A batch has more bytes of JSON than of protobuf, and a limited number of values."""
        items = [StoredValue(str(at), b"x" * MAX_TURN_COST, at) for at in range(100)]
        self.assertEqual(57, len(next(portions(items))))
        items = [StoredValue(str(at), b"{}", at) for at in range(1000)]
        self.assertEqual(512, len(next(portions(items))))


class ManualClock:
    """
    A clock whose calls are run by the test.

    @ivar calls: The pending calls.
    """

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def seconds(self) -> float:
        """Return the time."""
        return 0.0

    def callLater(self, delay: float, call: Callable[..., object], *args: object) -> Any:
        """Schedule a call."""
        self.calls.append(partial(call, *args))

    def next(self) -> None:
        """Run the next call."""
        self.calls.pop(0)()


class CacheTests(SynchronousTestCase):
    """Watch caches of values that are stored as protobuf."""

    def setUp(self) -> None:
        """Open a store."""
        self.turns = ManualClock()
        self.storage = MemoryStorage(Clock())
        self.successResultOf(self.storage.open())

    def put(self, name: str, value: bytes) -> None:
        """Store an object."""
        self.successResultOf(self.storage.commit([Write(f"/registry/configmaps/{name}", value, None)]))

    def cache(self) -> WatchCache:
        """Return a cache that is not started."""

        def decode(key: str, value: bytes, revision: int) -> Record:
            obj = decode_stored(definitions(), value)
            return Record.from_draft(key, revision, Draft(orjson.dumps({"metadata": obj["metadata"]}), {}, {}))

        cache = WatchCache(self.storage, "/registry/configmaps/", decode, self.turns)
        self.addCleanup(cache.stop)
        return cache

    def test_in_turns(self) -> None:
        """The reactor runs while a cache is filled and the storage is listed; no object is missing."""
        for at in range(20):
            self.put(
                f"{at:02}",
                stored(
                    f"{at:02}",
                    delimited(2, delimited(1, "k"), delimited(2, "x" * (MAX_TURN_COST // 2))),
                ),
            )
        cache = self.cache()
        started = Deferred.fromCoroutine(cache.start())
        turns = 0
        while not cache.ready:
            self.assertNoResult(started)
            self.put("late", stored(f"late{turns}"))
            self.turns.next()
            turns += 1
        self.successResultOf(started)
        self.assertEqual(turns, 9)
        late = cache.get("late")
        assert late is not None
        self.assertEqual((late.revision, b"late8" in late.item), (self.storage.revision, True))
        self.assertEqual(len(cache), 21)
        listed = Deferred.fromCoroutine(cache.list_from_storage())
        self.assertNoResult(listed)
        while not listed.called:
            self.turns.next()
        self.assertEqual(len(self.successResultOf(listed).records), 21)

    def test_stopped_while_filling(self) -> None:
        """A cache that is stopped while it is filled watches nothing."""
        for at in range(4):
            self.put(
                str(at),
                stored(
                    str(at),
                    delimited(2, delimited(1, "k"), delimited(2, "x" * MAX_TURN_COST)),
                ),
            )
        cache = self.cache()
        started = Deferred.fromCoroutine(cache.start())
        cache.stop()
        while not started.called:
            self.turns.next()
        self.successResultOf(started)
        self.put("4", stored("4"))
        self.assertFalse(cache.ready)
