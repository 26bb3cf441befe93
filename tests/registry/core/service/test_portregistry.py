"""Tests of L{kubetwist.registry.core.service.portregistry}, with the stores of two servers."""

from __future__ import annotations

from base64 import b64decode
from ipaddress import IPv4Address
from typing import Any, ClassVar

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions
from kubetwist.api.storage import Write
from kubetwist.registry.core.service.portregistry import (
    NUM_REPAIRS_BEFORE_LEAK_CLEANUP,
    REPAIR_INTERVAL,
    decode_bitmap,
    decode_range,
    encode_bitmap,
    encode_range,
)
from kubetwist.registry.stores import Stores
from kubetwist.storage.errors import KeyNotFound, RevisionCompacted, UnknownFormatError
from tests.registry.sharedstores import SharedStoresTestCase
from tests.registry.storetools import RacingBackend

KEY = "/registry/ranges/servicenodeports"


def service(name: str, port: int = 0, address: str = "") -> dict[str, Any]:
    """Return a service with a node port."""
    one = {"port": 80, **({"nodePort": port} if port else {})}
    given = {"clusterIP": address} if address else {}
    return {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [one], **given}}


def port_of(obj: dict[str, Any]) -> int:
    """Return the node port of a service."""
    port: int = obj["spec"]["ports"][0]["nodePort"]
    return port


class FormatTests(SynchronousTestCase):
    """Tests of the stored format."""

    @given(st.sets(st.integers(30000, 32767)))
    def test_round_trip(self, ports: set[int]) -> None:
        """Encoded ports are decoded to the same ports."""
        bits, low = decode_range(encode_range(30000, 32767, ports))
        self.assertEqual(decode_bitmap(bits, low), ports)
        self.assertEqual(encode_bitmap(ports, low), bits)

    def test_as_the_reference_writes_it(self) -> None:
        """The object is a RangeAllocation whose data is a big-endian number; its lowest bit is the lowest port."""
        value = encode_range(30000, 32767, [30000, 30009])
        self.assertTrue(value.endswith(b"}\n"))
        obj = orjson.loads(value)
        self.assertEqual((obj["kind"], obj["apiVersion"], obj["range"]), ("RangeAllocation", "v1", "30000-32767"))
        self.assertEqual(b64decode(obj["data"]), b"\x02\x01")

    def test_foreign(self) -> None:
        """A value that is not a RangeAllocation is rejected in any format."""
        for value in (
            b"{}",
            b"[]",
            b"null",
            b"7",
            b"\xff",
            b'{"kind":"RangeAllocation","range":"10.0.0.0/24","data":""}',
            b'{"kind":"RangeAllocation","range":7}',
            b'{"kind":"RangeAllocation","range":"30000-32767","data":"?"}',
            b'{"kind":"RangeAllocation","range":"99999-32767","data":""}',
            b'{"kind":"RangeAllocation","range":"30000-32767","data":"%b"}' % (b"A" * 20_000),
        ):
            self.assertRaises(UnknownFormatError, decode_range, value)
        self.assertEqual(decode_range(b'{"kind":"RangeAllocation","range":"30000-32767","data":null}'), (0, 30000))


class SharedNumbersTests(SharedStoresTestCase):
    """Tests of services with two servers."""

    options: ClassVar[dict[str, Any]] = {"service_ranges": ("10.0.0.0/28",), "node_ports": (30000, 30009)}

    def stored(self) -> set[int]:
        """Return the ports in the stored object."""
        return decode_bitmap(*decode_range(self.done(self.backend.read(KEY)).value))

    def race(self, stores: Stores) -> RacingBackend:
        """Insert a backend with concurrent writes for a server."""
        store = stores.get("", "services")
        store.backend = racing_backend = RacingBackend(self.backend)  # type: ignore[assignment]
        return racing_backend

    def refused(self, stores: Stores, obj: dict[str, Any]) -> APIStatusError:
        """Return the error of a creation."""
        store = stores.get("", "services")
        store.strategy.default(obj)
        made = store.create(self.scope, obj, CreateOptions())
        error: APIStatusError = self.failureResultOf(Deferred.fromCoroutine(made), APIStatusError).value
        return error

    def test_allocated_and_released(self) -> None:
        """A port is in the object as long as a service uses it, and both servers see it."""
        made = self.make(self.one, "services", service("a"))
        self.assertEqual(self.stored(), {port_of(made)})
        self.assertTrue(self.allocators(self.other).services.ports.in_use(port_of(made)))
        changed = self.change(self.other, "services", {**made, "spec": {**made["spec"], "type": "ClusterIP"}})
        self.assertNotIn("nodePort", changed["spec"]["ports"][0])
        self.assertEqual(self.stored(), set())
        again = self.make(self.other, "services", service("b", port_of(made)))
        self.delete(self.one, "services", "b")
        self.assertEqual(self.stored(), set())
        self.assertFalse(self.allocators(self.other).services.ports.in_use(port_of(again)))

    def test_in_use_at_other_server(self) -> None:
        """A port or address in use at one server is rejected at the other."""
        made = self.make(self.one, "services", service("a"))
        error = self.refused(self.other, service("b", port_of(made)))
        self.assertEqual(error.code, 422)
        self.assertIn("provided port is already allocated", error.message)
        error = self.refused(self.other, service("b", 0, made["spec"]["clusterIP"]))
        self.assertEqual(error.code, 422)
        self.assertIn("provided IP is already allocated", error.message)

    def test_all_numbers(self) -> None:
        """Two servers allocate every port once, until none is free."""
        made = [
            self.make((self.one, self.other)[number % 2], "services", service(f"s{number}")) for number in range(10)
        ]
        self.assertEqual({port_of(one) for one in made}, set(range(30000, 30010)))
        self.assertEqual(len({one["spec"]["clusterIP"] for one in made}), 10)
        self.assertIn("range is full", self.refused(self.one, service("more")).message)

    def test_chosen_at_once(self) -> None:
        """If two servers concurrently allocate the same requested port or address, the later write is rejected."""
        for rival, mine in (
            (service("a", 30001, "10.0.0.2"), service("b", 30001, "10.0.0.3")),
            (service("c", 30003, "10.0.0.5"), service("d", 30004, "10.0.0.5")),
        ):
            self.race(self.one).before.append(lambda rival=rival: self.make(self.other, "services", rival))
            self.assertEqual(self.refused(self.one, mine).code, 422)
            self.assertIsNotNone(self.one.get_copy("", "services", "default", rival["metadata"]["name"]))

    def test_any_at_once(self) -> None:
        """A dynamic number that another server concurrently allocates is replaced by another one."""
        for number in range(5):

            def rival(number: int = number) -> None:
                # The very numbers that the other service is about to get.
                taken = self.allocators(self.one).services.ports.pending()
                (address,) = self.allocators(self.one).services.ips["IPv4"].pending()
                self.make(self.other, "services", service(f"rival{number}", *taken, str(IPv4Address(address))))

            self.race(self.one).before.append(rival)
            self.make(self.one, "services", service(f"mine{number}"))
        services = [orjson.loads(one.item) for one in self.one.get("", "services").cache.list().records]
        self.assertEqual({port_of(one) for one in services}, set(range(30000, 30010)))
        self.assertEqual(len({one["spec"]["clusterIP"] for one in services}), 10)

    def test_update_at_once(self) -> None:
        """An update whose dynamic port another server concurrently allocates gets another one, without a conflict."""
        made = self.make(self.one, "services", service("a"))
        made = self.change(self.one, "services", {**made, "spec": {**made["spec"], "type": "ClusterIP"}})
        made["spec"] = {**made["spec"], "type": "NodePort"}

        def rival() -> None:
            self.make(self.other, "services", service("rival", *self.allocators(self.one).services.ports.pending()))

        self.race(self.one).before.append(rival)
        changed = self.change(self.one, "services", made)
        self.assertEqual(
            self.stored(), {port_of(changed), port_of(self.one.get_copy("", "services", "default", "rival"))}
        )

    def test_other_ports_at_once(self) -> None:
        """Two servers can concurrently allocate different ports, although both write the object."""
        self.race(self.one).before.append(lambda: self.make(self.other, "services", service("a", 30001)))
        self.make(self.one, "services", service("b", 30002))
        self.assertEqual(self.stored(), {30001, 30002})

    def test_rejected_service_reserves_nothing(self) -> None:
        """A rejected service reserves neither port nor address."""
        self.make(self.one, "services", service("a", 30001, "10.0.0.2"))
        self.refused(self.other, service("a", 30002, "10.0.0.5"))
        self.assertEqual(self.stored(), {30001})
        self.make(self.one, "services", service("b", 30002, "10.0.0.5"))

    def test_repair(self) -> None:
        """A repair adds missing ports immediately, and frees unused ones after several repairs."""
        made = self.make(self.one, "services", service("a", 30001))
        self.done(self.backend.commit([Write(KEY, encode_range(30000, 30009, [30005]), None)]))
        shared_ports = self.allocators(self.one).shared_ports
        assert shared_ports is not None
        self.done(shared_ports.repair(self.one.get("", "services").cache))
        self.assertEqual(self.stored(), {port_of(made), 30005})
        for _ in range(NUM_REPAIRS_BEFORE_LEAK_CLEANUP - 2):
            self.clock.advance(REPAIR_INTERVAL)
        self.assertEqual(self.stored(), {30001, 30005})
        self.clock.advance(REPAIR_INTERVAL)
        self.assertEqual(self.stored(), {30001})

    def test_lost_object(self) -> None:
        """A deleted object is written again with the next service, with all ports."""
        self.make(self.one, "services", service("a", 30001))
        self.done(self.backend.commit([Write(KEY, None, None)]))
        self.failureResultOf(Deferred.fromCoroutine(self.backend.read(KEY)), KeyNotFound)
        self.make(self.other, "services", service("b", 30002))
        self.assertEqual(self.stored(), {30001, 30002})

    def test_other_range(self) -> None:
        """A server with another range keeps the ports of the object."""
        self.done(self.backend.commit([Write(KEY, encode_range(29990, 30005, [29995, 30003]), 0)]))
        self.assertTrue(self.allocators(self.one).services.ports.in_use(30003))
        self.make(self.one, "services", service("a", 30001))
        self.assertEqual(self.stored(), {30001, 30003})

    def test_lost_place(self) -> None:
        """A server whose caches reload gets the changes of the other server."""
        self.make(self.one, "services", service("a", 30001, "10.0.0.5"))
        self.make(self.one, "services", service("b", 30002, "10.0.0.6"))
        stores = self.other
        for cache in (stores.get("", "services").cache, stores.get("networking.k8s.io", "ipaddresses").cache):
            cache._source.stop()
        self.delete(self.one, "services", "a")
        self.make(self.one, "services", service("c", 30003, "10.0.0.7"))
        for cache in (stores.get("", "services").cache, stores.get("networking.k8s.io", "ipaddresses").cache):
            cache.ended(RevisionCompacted(1, 2))
        self.clock.advance(1)
        known = self.allocators(stores).services
        self.assertEqual(known.ports.ports_in_use(), {30002, 30003})
        self.assertEqual([known.ips["IPv4"].has(f"10.0.0.{last}") for last in (5, 6, 7)], [False, True, True])
