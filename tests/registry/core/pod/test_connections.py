"""
Tests for L{kubetwist.registry.core.pod.connections}: where logs, streams and proxies lead, and where they can not.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.node.kubelets import PRETENDED, ConnectionRules
from kubetwist.registry.core.pod.logoptions import log_options
from kubetwist.registry.core.service.backends import service_backend
from kubetwist.registry.generic.parts import status_rules
from kubetwist.registry.generic.targets import Target, clean_path
from kubetwist.registry.subresources import connection_storage
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


class ConnectionCase(StoreTestCase):
    """Connections of some pods, services and nodes."""

    resources = ("pods", "services", "endpoints", "nodes")
    rules = ConnectionRules()

    def leads(self, resource: str, subresource: str, name: str, path: str = "", **query: Any) -> Target | None:
        """Where it leads."""
        info = self.store(resource).info
        part = info.subresource(subresource)
        assert part is not None
        connection = connection_storage(info, part, evolve(self.server.context, connection_rules=self.rules))
        lists = {key: value if isinstance(value, list) else [value] for key, value in query.items()}
        results: list[Any] = []
        Deferred.fromCoroutine(connection.connect(self.scope, name, path, lists)).addBoth(results.append)
        if isinstance(results[0], Failure):
            results[0].raiseException()
        target: Target | None = results[0]
        return target

    def shown(self, resource: str, subresource: str, name: str, path: str = "", **query: Any) -> str:
        """The URL that it leads to."""
        target = self.leads(resource, subresource, name, path, **query)
        assert target is not None
        behind = "" if target.query is None else f"?{target.query}"
        return f"{target.scheme}://{target.host}:{target.port}{target.path}{behind}"

    def why(self, resource: str, subresource: str, name: str, **query: Any) -> tuple[int, str]:
        """Why it leads nowhere."""
        with self.assertRaises(APIStatusError) as caught:
            self.leads(resource, subresource, name, **query)
        return caught.exception.code, caught.exception.message

    def tell(self, resource: str, name: str, **status: Any) -> None:
        """Change a status."""
        store = self.store(resource)
        self.changed(store, name, lambda obj: obj["status"].update(status), rules=status_rules(store))

    def running(self, name: str = "p", node: str = "n", **spec: Any) -> None:
        """A pod on a node."""
        obj = pod(name)
        obj["spec"].update(nodeName=node, **spec)
        self.made(self.store("pods"), obj)

    def node(self, name: str = "n", **status: Any) -> None:
        """A node that tells its address."""
        self.made(self.store("nodes"), {"metadata": {"name": name}})
        status.setdefault("addresses", [{"type": "InternalIP", "address": "10.1.2.3"}])
        self.tell("nodes", name, **status)


class KubeletTests(ConnectionCase):
    """What kubelets are asked for."""

    def test_no_node(self) -> None:
        """A pod that is nowhere has no streams, and its log is no content."""
        self.made(self.store("pods"), pod("p"))
        for stream in ("exec", "attach", "portforward"):
            self.assertEqual(self.why("pods", stream, "p"), (400, "pod p does not have a host assigned"))
        self.assertIsNone(self.leads("pods", "log", "p"))

    def test_node_that_is_gone(self) -> None:
        """A pod on a missing node is unreachable; as in the reference, the message names the node as a pod."""
        self.running()
        for stream in ("log", "exec", "attach", "portforward"):
            self.assertEqual(self.why("pods", stream, "p"), (404, 'pods "n" not found'))

    def test_ports(self) -> None:
        """Ports are numbers of 16 bits, one or several in each parameter."""
        self.made(self.store("pods"), pod("p"))
        unbound = (400, "pod p does not have a host assigned")
        for ports in (["80"], ["80,81"], ["0", "65535"], ["00080"]):
            self.assertEqual(self.why("pods", "portforward", "p", ports=ports), unbound)
        for port, problem in (
            ("x", "invalid syntax"),
            ("-1", "invalid syntax"),
            ("", "invalid syntax"),
            ("65536", "value out of range"),
            ("9" * 5000, "value out of range"),
        ):
            code, message = self.why("pods", "portforward", "p", ports=[f"80,{port}"])
            self.assertEqual(code, 400)
            self.assertEqual(message, f'cannot convert to []int32: strconv.ParseUint: parsing "{port}": {problem}')

    def test_addresses(self) -> None:
        """A kubelet is called at the best of its node's addresses, and the port that the node tells."""
        self.running()
        known = [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "h"}]
        self.node(addresses=known)
        self.assertEqual(self.shown("pods", "log", "p"), "https://h:10250/containerLogs/default/p/main?")
        self.tell("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 10300}})
        self.rules = ConnectionRules(("ExternalIP", "InternalIP"), 10251)
        self.assertEqual(self.shown("pods", "log", "p"), "https://10.1.2.3:10300/containerLogs/default/p/main?")
        self.tell("nodes", "n", daemonEndpoints={"kubeletEndpoint": {"Port": 0}})
        self.assertEqual(self.shown("nodes", "proxy", "n", "/pods"), "https://10.1.2.3:10251/pods")
        self.rules = ConnectionRules(("ExternalIP",))
        told = "no preferred addresses found; known addresses: [{InternalIP 10.1.2.3} {Hostname h}]"
        self.assertEqual(self.why("pods", "log", "p"), (500, told))

    def test_log(self) -> None:
        """A kubelet is asked for what the client asks for."""
        self.running()
        self.node()
        target = self.leads(
            "pods", "log", "p", follow="true", previous="1", timestamps="", tailLines="5", limitBytes="70",
            sinceTime="2026-01-02T03:04:05+01:00", insecureSkipTLSVerifyBackend="true",
        )  # fmt: skip
        assert target is not None
        self.assertEqual(
            target.query,
            "follow=true&limitBytes=70&previous=true&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=5&timestamps=true",
        )
        self.assertEqual((target.kubelet, target.insecure), (True, True))
        self.assertEqual(
            self.shown("pods", "log", "p", follow="false", sinceSeconds="30"),
            "https://10.1.2.3:10250/containerLogs/default/p/main?sinceSeconds=30",
        )

    def test_streams(self) -> None:
        """A command, its input and outputs are told to the kubelet by its own names."""
        self.running()
        self.node(declaredFeatures=["ExtendWebSocketsToKubelet"])
        at = "https://10.1.2.3:10250"
        query = {"command": ["sh", "-c", "a b&c"], "stdin": "true", "stdout": "1", "stderr": "0", "tty": "yes"}
        self.assertEqual(
            self.shown("pods", "exec", "p", **query),
            f"{at}/exec/default/p/main?command=sh&command=-c&command=a+b%26c&input=1&output=1&tty=1",
        )
        self.assertEqual(self.shown("pods", "attach", "p", stderr="1"), f"{at}/attach/default/p/main?error=1")
        self.assertEqual(
            self.shown("pods", "portforward", "p", ports=["80", "443"]), f"{at}/portForward/default/p?port=80%2C443"
        )
        target = self.leads("pods", "portforward", "p")
        assert target is not None
        self.assertEqual((target.query, target.features), ("", ("ExtendWebSocketsToKubelet",)))

    def test_containers(self) -> None:
        """A container is one that is there, and has to be named where there are several."""
        another = {"name": "other", "image": "i"}
        self.running(initContainers=[{"name": "init", "image": "i"}])
        self.node()
        self.assertEqual(self.why("pods", "log", "p", container="no"), (400, "container no is not valid for pod p"))
        self.assertIn("/p/init?", self.shown("pods", "log", "p", container="init"))
        self.assertIn("/p/main?", self.shown("pods", "exec", "p"))
        self.running("q", containers=[*pod("q")["spec"]["containers"], another])
        told = "a container name must be specified for pod q, choose one of: [main other]"
        self.assertEqual(self.why("pods", "attach", "q"), (400, told))

    def test_dry_run(self) -> None:
        """Connections can not be tried."""
        self.assertEqual(self.why("pods", "exec", "p", dryRun=""), (400, "dryRun is not supported"))


class ProxyTests(ConnectionCase):
    """What proxies lead to."""

    def test_pods(self) -> None:
        """A pod is reached at its address, by a port that is told, or the first that it has."""
        ports = [{"containerPort": 8080, "name": "web"}, {"containerPort": 9090}]
        spec = {"containers": [{"name": "c", "image": "i", "ports": ports}]}
        self.made(self.store("pods"), {"metadata": {"name": "p"}, "spec": spec})
        self.made(self.store("pods"), pod("q"))
        for name in ("p", "q"):
            self.tell("pods", name, podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        for name, url in (
            ("p", "http://10.1.2.3:8080"),
            ("p:9090", "http://10.1.2.3:9090"),
            ("https:p:web", "https://10.1.2.3:8080"),
            ("https:p:", "https://10.1.2.3:8080"),
            ("q", "http://10.1.2.3:80"),
            ("https:q:", "https://10.1.2.3:443"),
        ):
            self.assertEqual(self.shown("pods", "proxy", name, "/a//b/../c/"), f"{url}/a/c/")
        self.assertEqual(self.why("pods", "proxy", "ftp:p:1"), (400, 'invalid pod request "ftp:p:1"'))
        self.assertEqual(self.why("pods", "proxy", "p:none")[0], 400)
        for port in ("0", "65536", "9" * 50):
            told = f"error trying to reach service: dial tcp: address {port}: invalid port"
            self.assertEqual(self.why("pods", "proxy", f"p:{port}"), (503, told))

    def test_addresses_that_are_refused(self) -> None:
        """CVE-2020-8562: nobody is led to this machine, to its link, or to metadata services."""
        self.made(self.store("pods"), pod("p"))
        refused = (400, "address not allowed")
        self.assertEqual(self.why("pods", "proxy", "p:8080"), refused)
        bad = ("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "100.100.100.200", "0.0.0.0")
        for address in bad:
            self.tell("pods", "p", podIP=address, podIPs=[{"ip": address}])
            self.assertEqual(self.why("pods", "proxy", "p"), refused, address)
            self.assertEqual(self.why("pods", "proxy", "https:p:9"), refused, address)
        self.node()
        for address in bad:
            self.tell("nodes", "n", addresses=[{"type": "InternalIP", "address": address}])
            self.assertEqual(self.why("nodes", "proxy", "n"), refused, address)
        self.rules = ConnectionRules(loopback=True)
        self.tell("nodes", "n", addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
        self.assertEqual(self.shown("nodes", "proxy", "n"), "https://127.0.0.1:10250")
        self.tell("nodes", "n", addresses=[{"type": "InternalIP", "address": "169.254.169.254"}])
        self.assertEqual(self.why("nodes", "proxy", "n"), refused)

    def test_services(self) -> None:
        """A service is reached by a port that it has, where a ready pod answers for it."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        self.assertEqual(self.why("services", "proxy", "https:s:99"), (503, 'no service port 99 found for service "s"'))
        self.assertEqual(self.why("services", "proxy", "s"), (404, 'services "s" not found'))
        self.assertEqual(self.why("services", "proxy", "gone:80")[0], 404)
        self.assertEqual(self.why("services", "proxy", "a:b:c:d"), (400, 'invalid service request "a:b:c:d"'))
        self.endpoints("s", notReadyAddresses=[{"ip": "10.1.2.3"}])
        self.assertEqual(self.why("services", "proxy", "s:80"), (503, 'no endpoints available for service "s:80"'))
        self.made(self.store("pods"), pod("p"))
        self.tell("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        self.assertEqual(self.shown("services", "proxy", "s:80", "/x"), "http://10.1.2.3:8080/x")
        self.assertEqual(self.shown("services", "proxy", "https:s:w", "/x"), "https://10.1.2.3:8080/x")
        self.assertEqual(self.why("services", "proxy", "s"), (503, 'no endpoints available for service "s"'))

    def test_endpoints_of_nobody(self) -> None:
        """Whoever writes endpoints can not have the server call anybody but the pods of the namespace."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        self.made(self.store("pods"), pod("p"))
        self.tell("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        for address in (
            {"ip": "10.1.2.3"},
            {"ip": "10.1.2.4", "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"}},
            {"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "name": "p", "namespace": "other"}},
            {"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "name": "gone", "namespace": "default"}},
        ):
            self.endpoints("s", addresses=[address])
            self.assertEqual(self.why("services", "proxy", "s:w")[0], 503, address)

    def test_load_is_spread(self) -> None:
        """Which of the pods of a service answers is left to chance."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        listed = []
        for number in range(3):
            self.made(self.store("pods"), pod(f"p{number}"))
            ip = f"10.1.2.{number}"
            self.tell("pods", f"p{number}", podIP=ip, podIPs=[{"ip": ip}])
            listed.append({"ip": ip, "targetRef": {"kind": "Pod", "name": f"p{number}", "namespace": "default"}})
        self.endpoints("s", addresses=listed, ports=[{"port": 8080}])
        found = [
            service_backend(self.stores, "default", "s", "", "s", lambda many, one=one: min(one, many - 1))
            for one in range(3)
        ]
        self.assertEqual(found, [("10.1.2.0", 8080), ("10.1.2.1", 8080), ("10.1.2.2", 8080)])

    def endpoints(self, name: str, ports: Any = ({"port": 8080, "name": "w"},), **subset: Any) -> None:
        """Have a service's endpoints be these."""
        store = self.store("endpoints")
        subsets = [{**subset, "ports": list(ports)}]
        if self.stores.lookup("", "endpoints", "default", name) is None:
            self.made(store, {"metadata": {"name": name}, "subsets": subsets})
        else:
            self.changed(store, name, lambda obj: obj.update(subsets=subsets))

    def test_nodes(self) -> None:
        """The kubelet is what a node's proxy leads to, and other ports are called as nobody in particular."""
        self.node()
        for name, expected in (
            ("n", (True, "https://10.1.2.3:10250/m")),
            ("http:n:10250", (True, "https://10.1.2.3:10250/m")),
            ("n:9100", (False, "http://10.1.2.3:9100/m")),
            ("https:n:9100", (False, "https://10.1.2.3:9100/m")),
        ):
            target = self.leads("nodes", "proxy", name, "/m")
            assert target is not None
            self.assertEqual((target.kubelet, self.shown("nodes", "proxy", name, "/m")), expected)
        self.assertEqual(self.why("nodes", "proxy", "gone"), (404, 'nodes "gone" not found'))
        self.made(self.store("nodes"), {"metadata": {"name": "new"}})
        self.assertEqual(self.why("nodes", "proxy", "new")[1], "no preferred addresses found; known addresses: []")

    def test_pretend_nodes(self) -> None:
        """What is on a node that is there in appearance only leads nowhere, and why is said."""
        self.running()
        self.node(nodeInfo={"containerRuntimeVersion": f"{PRETENDED}1.0.0"})
        self.tell("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        told = (503, "n is a pretend node: it has no kubelet, and no container runs on it")
        for resource, subresource, name in (
            ("pods", "log", "p"),
            ("pods", "exec", "p"),
            ("pods", "attach", "p"),
            ("pods", "portforward", "p"),
            ("pods", "proxy", "p:80"),
            ("services", "proxy", "s:80"),
            ("nodes", "proxy", "n"),
            ("nodes", "proxy", "n:9100"),
        ):
            self.assertEqual(self.why(resource, subresource, name), told, (resource, subresource, name))
        self.tell("nodes", "n", nodeInfo={"containerRuntimeVersion": "containerd://2.0.0"})
        self.assertEqual(self.shown("pods", "proxy", "p:80", "/x"), "http://10.1.2.3:80/x")


class LogOptionsTests(SynchronousTestCase):
    """Tests for L{kubetwist.registry.core.pod.logoptions}."""

    def refusal(self, split_streams: bool = False, **query: str) -> APIStatusError:
        """Why a query is refused."""
        with self.assertRaises(APIStatusError) as caught:
            log_options({name: [value] for name, value in query.items()}).check("p", split_streams=split_streams)
        return caught.exception

    def test_limits(self) -> None:
        """Limits are numbers that limit; a time to begin is given in one way."""
        error = self.refusal(tailLines="-1", sinceSeconds="0", limitBytes="0")
        fields = [cause["field"] for cause in error.details["causes"]]  # type: ignore[index]
        self.assertEqual(fields, ["tailLines", "limitBytes", "sinceSeconds"])
        error = self.refusal(sinceSeconds="1", sinceTime="2026-01-02T03:04:05Z")
        self.assertEqual(error.details["causes"][0]["field"], "[]")  # type: ignore[index]

    def test_what_is_no_number(self) -> None:
        """Numbers and times are read as Go reads them, and its words tell what is wrong."""
        for query, told in (
            ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
            ({"tailLines": "1_0"}, 'strconv.ParseInt: parsing "1_0": invalid syntax'),
            ({"limitBytes": "9" * 30}, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
            ({"sinceTime": "x"}, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ):
            error = self.refusal(**query)
            self.assertEqual((error.code, error.message), (400, told))

    def test_streams(self) -> None:
        """One of the output streams can be asked for where the feature is on, and not together with tailLines."""
        self.assertIn("stream: Forbidden: may not be specified", self.refusal(stream="All").message)
        self.assertIn('"All", "Stderr", "Stdout"', self.refusal(True, stream="Stdin").message)
        self.assertIn("mutually exclusive", self.refusal(True, stream="Stdout", tailLines="1").message)
        options = log_options({"stream": ["Stdout"]})
        options.check("p", split_streams=True)
        self.assertEqual(options.kubelet_query(split_streams=True), "stream=Stdout")
        self.assertEqual(log_options({}).kubelet_query(split_streams=True), "stream=All")

    def test_nothing(self) -> None:
        """Zero lines are fine, and a time without a value is the beginning of time."""
        options = log_options({"tailLines": ["0"], "sinceTime": [""]})
        options.check("p")
        self.assertEqual(options.kubelet_query(), "sinceTime=0001-01-01T00%3A00%3A00Z&tailLines=0")


class PathTests(SynchronousTestCase):
    """Tests for L{clean_path}."""

    def test_detours(self) -> None:
        """Nobody gets out of a path by dots; its last slash stays."""
        for path, cleaned in (
            ("", ""), ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("//a", "/a"), ("/../../a/..", "/"),
            ("/a/./b//c/", "/a/b/c/"),
        ):  # fmt: skip
            self.assertEqual(clean_path(path), cleaned)

    @given(lists(sampled_from(["", ".", "..", "a", "b.", "...", "é", "%2e"])))
    def test_any(self, parts: list[str]) -> None:
        """What is left of any path has no detours, and is left as it is."""
        path = "".join(f"/{part}" for part in parts)
        cleaned = clean_path(path)
        self.assertEqual(clean_path(cleaned), cleaned)
        self.assertFalse({".", ".."} & set(cleaned.split("/")))
        self.assertNotIn("//", cleaned)
        self.assertEqual(
            (cleaned[:1], cleaned[-1:] == "/"), ("/", path.endswith("/") or cleaned == "/") if path else ("", False)
        )
