"""Tests for L{kubetwist.controllers.clusterauthenticationtrust}."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.options import DeleteOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.cli.kubeapi import Options
from kubetwist.controllers.clusterauthenticationtrust import (
    NAME,
    ClusterAuthenticationTrustController,
    cluster_authentication_info,
    merge_info,
)
from tests.certificates import Issued, root, subject
from tests.registry.filledstorage import FilledStorage
from tests.registry.storetools import StoreTestCase
from tests.resources import server

SCOPE = RequestScope("kube-system")


def parsed(*issued: Issued) -> list[Any]:
    """Return the certificates."""
    return [one.certificate for one in issued]


class ClusterAuthenticationTrustTests(StoreTestCase):
    """Tests for L{ClusterAuthenticationTrustController}."""

    resources = ("configmaps", "namespaces")

    def setUp(self) -> None:
        """Create a server with CAs of users and of proxies."""
        super().setUp()
        self.users, self.proxies = [root("users")], [root("proxies")]
        options = Options()
        options.parseOptions(["--requestheader-username-headers=X-Remote-User", "--requestheader-allowed-names=front"])
        self.info = ClusterAuthenticationTrustController(
            self.store("configmaps"),
            self.server.clock,
            lambda: cluster_authentication_info(options, parsed(*self.users), parsed(*self.proxies)),
        )

    def start(self) -> None:
        """Start the controller."""
        self.successResultOf(Deferred.fromCoroutine(self.info.start()))
        self.addCleanup(self.info.stop)

    def config_map_data(self) -> Any:
        """Return the data of the config map, or L{None}."""
        found = self.stores.get_copy("", "configmaps", "kube-system", NAME)
        return found and found["data"]

    def test_created(self) -> None:
        """The config map has the CAs and the request header names."""
        self.start()
        self.assertEqual(
            self.config_map_data(),
            {
                "client-ca-file": self.users[0].pem.decode(),
                "requestheader-client-ca-file": self.proxies[0].pem.decode(),
                "requestheader-username-headers": '["X-Remote-User"]',
                "requestheader-uid-headers": "[]",
                "requestheader-group-headers": "[]",
                "requestheader-extra-headers-prefix": "[]",
                "requestheader-allowed-names": '["front"]',
            },
        )

    def test_no_proxies(self) -> None:
        """Without CAs of proxies there are no header names."""
        self.proxies.clear()
        self.start()
        self.assertEqual(set(self.config_map_data()), {"client-ca-file"})

    def test_kept(self) -> None:
        """A deleted config map is created again, and removed values are restored."""
        self.start()
        before = self.config_map_data()
        self.successResultOf(self.store("configmaps").delete(SCOPE, NAME, DeleteOptions()))
        self.server.clock.advance(0)
        self.assertEqual(self.config_map_data(), before)
        obj = self.stores.get_copy("", "configmaps", "kube-system", NAME)
        obj["data"] = {"client-ca-file": "spoilt", "other": "x"}
        self.successResultOf(self.store("configmaps").update(SCOPE, NAME, lambda stored: obj, UpdateOptions()))
        self.server.clock.advance(0)
        self.assertEqual(self.config_map_data(), {**before, "other": "x"})

    def test_other_servers(self) -> None:
        """Values of other servers are kept, without duplicates. New CAs are added."""
        self.start()
        first = self.users[0].pem.decode()
        self.users[:] = [root("more")]
        self.info.schedule()
        self.server.clock.advance(0)
        self.assertEqual(self.config_map_data()["client-ca-file"], first + self.users[0].pem.decode())
        self.info.schedule()
        self.server.clock.advance(0)
        self.assertEqual(self.config_map_data()["client-ca-file"], first + self.users[0].pem.decode())

    def test_many_config_maps(self) -> None:
        """With many config maps, the present one is read from the storage, and followed when the cache is filled."""
        self.start()
        data = self.config_map_data()
        self.info.stop()
        self.patch(FilledStorage, "further", {f"kube-system/{NAME}": data, "kube-system/other": {}})
        self.patch(server, "MemoryStorage", FilledStorage)
        self.setUp()
        self.users[:], self.proxies[:] = [], []
        self.start()
        configmaps = self.store("configmaps")
        self.assertTrue(configmaps.cache.on_demand.pending)
        changed = {"metadata": {"namespace": "kube-system", "name": NAME}, "data": {"client-ca-file": "spoilt"}}
        self.users[:] = [root("users")]
        update = Deferred.fromCoroutine(configmaps.update(SCOPE, NAME, lambda stored: changed, UpdateOptions()))
        self.server.clock.advance(0)
        self.successResultOf(update)
        self.server.clock.advance(0)
        self.assertEqual(self.config_map_data()["client-ca-file"], self.users[0].pem.decode())

    def test_absent_among_many(self) -> None:
        """With many config maps, an absent one is created."""
        self.patch(server, "MemoryStorage", FilledStorage)
        self.setUp()
        started = Deferred.fromCoroutine(self.info.start())
        self.addCleanup(self.info.stop)
        self.server.clock.advance(0)
        self.successResultOf(started)
        self.assertIn("client-ca-file", self.config_map_data())

    def test_merge_info(self) -> None:
        """Expired certificates and invalid lists are dropped."""
        old = self.users[0].issue(subject("old"), begins=timedelta(hours=-3), ends=timedelta(hours=-2)).pem.decode()
        new = self.users[0].pem.decode()
        names = "requestheader-allowed-names"
        self.assertEqual(merge_info({"client-ca-file": old}, {"client-ca-file": new})["client-ca-file"], new)
        for known, found in (("garbage", ["a"]), ("{}", ["a"]), ('["b", 5]', ["b", "a"]), ('["a"]', ["a"])):
            self.assertEqual(json.loads(merge_info({names: known}, {names: '["a"]'})[names]), found)

    def test_uids(self) -> None:
        """There are no headers of uids without their feature gate, which is on since 1.33."""
        options = Options()
        for flags, expected in (
            ([], True),
            (["--feature-gates=RemoteRequestHeaderUID=false"], False),
            (["--kubernetes-version=1.32"], False),
        ):
            options.parseOptions(flags)
            found = cluster_authentication_info(options, [], [], root("own").pem.decode())
            self.assertEqual("requestheader-uid-headers" in found, expected, flags)
            options = Options()

    def test_generated_proxy_certificate(self) -> None:
        """With a generated proxy certificate, the config map has its CA and the headers."""
        own = root("own").pem.decode()
        options = Options()
        options.parseOptions([])
        found = cluster_authentication_info(options, [], [], own)
        self.assertEqual(found["requestheader-client-ca-file"], own)
        self.assertEqual(found["requestheader-allowed-names"], '["front-proxy-client"]')
        self.assertEqual(found["requestheader-group-headers"], '["X-Remote-Group"]')
        options.parseOptions(["--requestheader-group-headers=X-Gang,x-remote-group"])
        proxies = parsed(*self.proxies)
        found = cluster_authentication_info(options, [], proxies, own)
        self.assertEqual(found["requestheader-client-ca-file"], self.proxies[0].pem.decode() + own)
        self.assertEqual(found["requestheader-group-headers"], '["X-Gang","x-remote-group"]')
        # An empty list allows all names.
        self.assertEqual(found["requestheader-allowed-names"], "[]")
        options.parseOptions(["--requestheader-allowed-names=front"])
        found = cluster_authentication_info(options, [], proxies, own)
        self.assertEqual(found["requestheader-allowed-names"], '["front","front-proxy-client"]')
