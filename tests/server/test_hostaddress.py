"""Tests of L{kubetwist.server.hostaddress}."""

from __future__ import annotations

import ipaddress
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server import hostaddress
from kubetwist.server.hostaddress import Interface, advertised_address, choose_address, default_routes, read_interfaces

ROUTES = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth1	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
eth1	00000000	010200C0	0003	0	0	0	00000000	0	0	0
"""
_ZEROS = "0" * 32
ROUTES6 = f"""fd000000000000000000000000000000 40 {_ZEROS} 00 {_ZEROS} 00000100 00000001 00000000 00000001     eth1
{_ZEROS} 00 {_ZEROS} 00 fd000000000000000000000000000001 00000400 00000001 00000000 00000003     eth1
{_ZEROS} 00 {_ZEROS} 00 {_ZEROS} ffffffff 00000001 00000000 00200200       lo
"""


def interface(name: str, *addresses: str, up: bool = True) -> Interface:
    """Return an interface whose kind is given by its name."""
    return Interface(name, up, name.startswith("lo"), name.startswith("tun"), addresses)


LO = interface("lo", "127.0.0.1", "::1")


class ChoiceTests(SynchronousTestCase):
    """L{choose_address}."""

    def test_routes(self) -> None:
        """The default routes are found; those of IPv6 need a gateway."""
        self.assertEqual(default_routes(ROUTES, ROUTES6), [(4, "eth1"), (6, "eth1")])
        self.assertEqual(default_routes("", ""), [])

    def test_default_route(self) -> None:
        """The first global address of the default route's interface and IP version is used."""
        interfaces = [
            LO,
            interface("eth0", "192.0.2.9"),
            interface("eth1", "169.254.0.1", "fe80::1", "10.0.0.1", "fd::1"),
        ]
        routes = default_routes(ROUTES, ROUTES6)
        self.assertEqual(choose_address((4, 6), interfaces, routes), "10.0.0.1")
        self.assertEqual(choose_address((6, 4), interfaces, routes), "fd::1")
        self.assertEqual(choose_address((6, 4), interfaces, routes[:1]), "10.0.0.1")

    def test_loopback_with_a_global_address(self) -> None:
        """If that interface has none, a global address of the loopback interface is used."""
        interfaces = [interface("lo", "127.0.0.1", "192.0.2.1"), interface("eth1", "fe80::1")]
        self.assertEqual(choose_address((4, 6), interfaces, [(4, "eth1")]), "192.0.2.1")
        down = [LO, interface("eth1", "192.0.2.1", up=False)]
        self.assertEqual(choose_address((4, 6), down, [(4, "eth1")]), "")

    def test_no_routes(self) -> None:
        """Without a default route there is no address; if routes are unknown all interfaces are searched."""
        interfaces = [LO, interface("tun0", "192.0.2.1"), interface("eth0", "224.0.0.1", "192.0.2.2")]
        self.assertEqual(choose_address((4, 6), interfaces, []), "")
        self.assertEqual(choose_address((4, 6), interfaces, None), "192.0.2.2")


class HostTests(SynchronousTestCase):
    """L{advertised_address} on this machine."""

    def test_named(self) -> None:
        """An advertised or listening address from a flag is used unchanged."""
        self.assertEqual(advertised_address("127.0.0.1", "192.0.2.1"), "192.0.2.1")
        self.assertEqual(advertised_address("127.0.0.1", "127.0.0.1"), "127.0.0.1")
        self.assertEqual(advertised_address("192.0.2.1", ""), "192.0.2.1")
        self.assertEqual(advertised_address("192.0.2.1", "0.0.0.0"), "192.0.2.1")

    def test_chosen(self) -> None:
        """A server on the loopback address or on all addresses advertises a global address of the host, or loopback."""
        result = {advertised_address(bind, "") for bind in ("127.0.0.1", "0.0.0.0")}
        self.assertEqual(len(result), 1)
        (address,) = result
        self.assertFalse(ipaddress.ip_address(address).is_unspecified)
        self.assertIn(address, {"127.0.0.1", *(one for each in read_interfaces() for one in each.addresses)})

    def test_no_network(self) -> None:
        """A host without routes uses its loopback address."""
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        (folder / "route").write_text("Iface\n")
        self.patch(hostaddress, "PROC", folder)
        self.assertEqual([advertised_address(bind, "") for bind in ("127.0.0.1", "::1")], ["127.0.0.1", "::1"])

    def test_other_systems(self) -> None:
        """If the system does not list its interfaces, the source address of connections is used."""

        def unknown() -> list[Interface]:
            raise OSError("as a test")

        self.patch(hostaddress, "read_interfaces", unknown)
        self.patch(hostaddress, "_source_address", lambda versions: f"192.0.2.{versions[0]}")
        self.assertEqual(advertised_address("127.0.0.1", ""), "192.0.2.4")
