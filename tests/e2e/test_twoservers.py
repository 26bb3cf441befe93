"""Tests for two servers over one etcd: they agree on all writes, and allocate nothing twice."""

from __future__ import annotations

import http.client
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing._connection import Connection
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from .test_etcd import stored

pytestmark = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")

#: How many clients there are in races.
CLIENTS = 8
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class AdvertisedServer(SubprocessServer):
    """A server that advertises another address than 127.0.0.1, at which tests connect."""

    def __init__(self, etcd: EtcdServer, address: str, *arguments: str, **options: Any) -> None:
        super().__init__(
            f"--etcd-servers={etcd.urls[0]}", f"--advertise-address={address}", *arguments, timeout=60, **options
        )
        self.address = address

    def start(self) -> SubprocessServer:
        """See L{SubprocessServer.start}."""
        super().start()
        assert self._connection is not None
        self._connection = attrs.evolve(self._connection, url=f"https://127.0.0.1:{self._connection.port}")
        return self


@pytest.fixture(scope="module")
def etcd() -> Iterator[EtcdServer]:
    """An etcd of one member."""
    with EtcdServer() as etcd:
        yield etcd


@pytest.fixture(scope="module")
def servers(etcd: EtcdServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[AdvertisedServer]]:
    """Two servers; the second has a copy of the keys of the first."""
    first, second = (tmp_path_factory.mktemp(name) / "data" for name in ("first", "second"))
    flags = ("--service-cluster-ip-range=10.0.0.0/26", "--service-node-port-range=30000-30039", "--controllers=")
    with AdvertisedServer(etcd, "192.0.2.1", *flags, data_dir=first) as one:
        shutil.copytree(first, second, ignore=shutil.ignore_patterns("kubetwist.pid", "*.kubeconfig"))
        with AdvertisedServer(etcd, "192.0.2.2", *flags, data_dir=second) as other:
            yield [one, other]
            assert "Traceback" not in other.output(), other.output()
        assert "Traceback" not in one.output(), one.output()


@pytest.fixture
def namespace(servers: list[AdvertisedServer], request: pytest.FixtureRequest) -> str:
    """A separate namespace with the default service account."""
    name: str = request.node.name.replace("_", "-")
    assert servers[0].request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    assert servers[1].request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})[
        0
    ]
    return name


def eventually(condition: Callable[[], Any], seconds: float = 40) -> Any:
    """Return the result of a condition as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)
    return found


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the results of concurrent calls, with limited concurrency."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]


def posts(servers: Sequence[SubprocessServer], path: str, objects: Sequence[Any]) -> list[tuple[int, Any]]:
    """Create objects alternately at both servers."""
    return at_once(
        [
            lambda server=servers[number % 2], obj=obj: server.request("POST", path, obj)
            for number, obj in enumerate(objects)
        ]
    )


def as_user(server: SubprocessServer, token: str) -> Connection:
    """Return the server as another user."""
    return server.connection.with_token(token)


def watched(server: SubprocessServer, path: str) -> list[Any]:
    """Return all events of a watch with a timeout."""
    connection = server.connection
    client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30)
    try:
        client.request("GET", path, headers={"Authorization": f"Bearer {connection.token}"})
        return [json.loads(line) for line in client.getresponse().read().splitlines()]
    finally:
        client.close()


def endpoints(server: SubprocessServer) -> list[str]:
    """Return the addresses in the endpoints of the C{kubernetes} service."""
    code, found = server.request("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    return [address for one in found["endpoints"] for address in one["addresses"]] if code == 200 else []


def test_reads_after_writes(servers: list[AdvertisedServer], namespace: str) -> None:
    """Objects written at one server can be read, listed, changed and deleted at the other server immediately."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(30):
        here, there = servers[number % 2], servers[1 - number % 2]
        code, created = here.request("POST", path, {"metadata": {"name": f"c{number}"}, "data": {"n": "0"}})
        assert code == 201
        code, found = there.request("GET", f"{path}/c{number}")
        assert (code, found) == (200, created)
        found["data"]["n"] = "1"
        assert there.request("PUT", f"{path}/c{number}", found)[0] == 200
        code, listed = here.request("GET", path)
        assert [one["data"]["n"] for one in listed["items"]] == ["1"]
        assert here.request("PUT", f"{path}/c{number}", found)[0] == 409
        assert here.request("DELETE", f"{path}/c{number}")[0] == 200
        assert there.request("GET", f"{path}/c{number}")[0] == 404
        assert there.request("GET", path)[1]["items"] == []


def test_definitions(servers: list[AdvertisedServer]) -> None:
    """A custom resource that is established at one server is served by the other, and is removed from both."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    for number in range(5):
        here, there = servers[number % 2], servers[1 - number % 2]
        plural, group = f"things{number}", "twoservers.example.org"
        spec = {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": f"thing{number}", "kind": f"Thing{number}"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
        crd = {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}
        assert here.request("POST", CRDS, crd)[0] == 201

        def established(server: SubprocessServer = here, name: str = f"{plural}.{group}") -> bool:
            conditions = server.request("GET", f"{CRDS}/{name}")[1].get("status", {}).get("conditions")
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions or ())

        eventually(established)
        thing = {"apiVersion": f"{group}/v1", "kind": f"Thing{number}", "metadata": {"name": "a"}, "n": 7}
        code, created = there.request("POST", f"/apis/{group}/v1/{plural}", thing)
        assert code == 201, created
        code, found = here.request("GET", f"/apis/{group}/v1/{plural}/a")
        assert (code, found.get("n")) == (200, 7)
        assert there.request("DELETE", f"{CRDS}/{plural}.{group}")[0] == 200
        missing = f"{CRDS}/{plural}.{group}"
        eventually(lambda server=here, path=missing: server.request("GET", path)[0] == 404)
        assert there.request("GET", f"/apis/{group}/v1/{plural}")[0] == 404
        assert here.request("GET", f"/apis/{group}/v1/{plural}")[0] == 404


def test_accounts(servers: list[AdvertisedServer], namespace: str) -> None:
    """
    Service accounts, their tokens and permissions take effect at the other server immediately, and so does their
    removal.
    """
    accounts, rbac = f"/api/v1/namespaces/{namespace}/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(10):
        here, there = servers[number % 2], servers[1 - number % 2]
        name = f"account{number}"
        assert here.request("POST", accounts, {"metadata": {"name": name}})[0] == 201
        code, created = here.request("POST", f"{accounts}/{name}/token", {"spec": {}})
        assert code == 201, created
        account_client = as_user(there, created["status"]["token"])
        assert account_client.request("GET", maps)[0] == 403
        role = {
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
        }
        assert here.request("POST", f"{rbac}/namespaces/{namespace}/roles", role)[0] == 201
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        assert here.request("POST", f"{rbac}/namespaces/{namespace}/rolebindings", binding)[0] == 201
        assert account_client.request("GET", maps)[0] == 200
        assert here.request("DELETE", f"{rbac}/namespaces/{namespace}/rolebindings/{name}")[0] == 200
        assert account_client.request("GET", maps)[0] == 403
        assert here.request("DELETE", f"{accounts}/{name}")[0] == 200
        assert account_client.request("GET", maps)[0] == 401


def test_policies(servers: list[AdvertisedServer], namespace: str) -> None:
    """A policy takes effect at the other server immediately, and so does its removal."""
    group, maps = "/apis/admissionregistration.k8s.io/v1", f"/api/v1/namespaces/{namespace}/configmaps"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    for number in range(5):
        here, there = servers[number % 2], servers[1 - number % 2]
        name = f"policy{number}"
        policy = {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"object.metadata.name != 'no{number}'"}],
            },
        }
        binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
        assert here.request("POST", f"{group}/validatingadmissionpolicies", policy)[0] == 201
        assert here.request("POST", f"{group}/validatingadmissionpolicybindings", binding)[0] == 201
        assert there.request("POST", maps, {"metadata": {"name": f"no{number}"}})[0] == 422
        assert there.request("POST", maps, {"metadata": {"name": f"yes{number}"}})[0] == 201
        assert here.request("DELETE", f"{group}/validatingadmissionpolicybindings/{name}")[0] == 200
        assert there.request("POST", maps, {"metadata": {"name": f"no{number}"}})[0] == 201


def test_namespaces(servers: list[AdvertisedServer], namespace: str) -> None:
    """No object can be created at the other server in a namespace that is being deleted."""
    assert servers[0].request("DELETE", f"/api/v1/namespaces/{namespace}")[0] == 200
    code, status = servers[1].request(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "late"}}
    )
    assert (code, status["reason"]) == (403, "Forbidden")
    assert "because it is being terminated" in status["message"]


def test_revisions(servers: list[AdvertisedServer], namespace: str) -> None:
    """Lists and watches can be continued at the other server: pages, revisions, bookmarks."""
    one, other = servers
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(7):
        assert one.request("POST", path, {"metadata": {"name": f"c{number}"}})[0] == 201
    names, following, pages = [], "", 0
    while True:
        server = servers[pages % 2]
        code, page = server.request("GET", f"{path}?limit=2&continue={quote(following)}")
        assert code == 200, page
        names += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        if pages == 1:
            # Changes do not show in the pages that follow.
            assert other.request("DELETE", f"{path}/c6")[0] == 200
            assert one.request("POST", path, {"metadata": {"name": "c9"}})[0] == 201
        following = page["metadata"].get("continue", "")
        if not following:
            break
    assert names == [f"c{number}" for number in range(7)]
    revision = page["metadata"]["resourceVersion"]
    events = watched(other, f"{path}?watch=1&resourceVersion={revision}&timeoutSeconds=1")
    assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [("DELETED", "c6"), ("ADDED", "c9")]
    # A server waits for a revision of the other server; a revision in the far future times out.
    for number in range(10):
        code, created = servers[number % 2].request("POST", path, {"metadata": {"generateName": "r"}})
        newest = created["metadata"]["resourceVersion"]
        code, listed = servers[1 - number % 2].request("GET", f"{path}?resourceVersion={newest}")
        assert code == 200 and int(listed["metadata"]["resourceVersion"]) >= int(newest)
        assert created in [{**one, "kind": "ConfigMap", "apiVersion": "v1"} for one in listed["items"]]
    code, status = other.request("GET", f"{path}?resourceVersion={int(newest) + 1_000_000}")
    assert (code, status["reason"]) == (504, "Timeout")
    assert "Too large resource version" in status["message"]


def test_quota_race(servers: list[AdvertisedServer], namespace: str) -> None:
    """In a race through both servers for the rest of a quota, exactly as many creations win as there is quota."""
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    name = "count/secrets"
    assert servers[0].request("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": {name: "10"}}})[0] == 201
    used = {"metadata": {"name": "q"}, "status": {"hard": {name: "10"}, "used": {name: "0"}}}
    patch = json.dumps(used).encode()
    kind = "application/merge-patch+json"
    assert servers[1].request("PATCH", f"{quotas}/q/status", patch, content_type=kind)[0] == 200
    objects = [{"metadata": {"name": f"s{number}"}} for number in range(32)]
    answers = posts(servers, f"/api/v1/namespaces/{namespace}/secrets", objects)
    codes = Counter(code for code, _ in answers)
    assert codes == {201: 10, 403: 22}, [answer for code, answer in answers if code not in (201, 403)]
    assert all("exceeded quota" in answer["message"] for code, answer in answers if code == 403)
    for server in servers:
        _, quota = server.request("GET", f"{quotas}/q")
        assert quota["status"]["used"] == {name: "10"}
        _, listed = server.request("GET", f"/api/v1/namespaces/{namespace}/secrets")
        assert len(listed["items"]) == 10


def test_service_race(servers: list[AdvertisedServer], namespace: str, etcd: EtcdServer) -> None:
    """
    Services that are created concurrently at both servers have distinct addresses and node ports, until none is left.
    """
    path = f"/api/v1/namespaces/{namespace}/services"
    objects = [
        {"metadata": {"name": f"s{number}"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
        for number in range(44)
    ]
    answers = posts(servers, path, objects)
    created = [obj for code, obj in answers if code == 201]
    refused = [status["message"] for code, status in answers if code != 201]
    assert len(created) == 40, refused
    assert all("range is full" in message for message in refused)
    assert {obj["spec"]["ports"][0]["nodePort"] for obj in created} == set(range(30000, 30040))
    assert len({obj["spec"]["clusterIP"] for obj in created}) == 40
    # The key and the format are kube-apiserver's.
    value, _ = stored(etcd, "/registry/ranges/servicenodeports")
    taken = json.loads(value)
    assert (taken["kind"], taken["range"], taken["data"]) == ("RangeAllocation", "30000-30039", "//////8=")
    # Only one of several concurrent requests for the same port succeeds.
    at_once([lambda name=obj["metadata"]["name"]: servers[0].request("DELETE", f"{path}/{name}") for obj in created])
    spec = {"type": "NodePort", "clusterIP": "10.0.0.40", "ports": [{"port": 80, "nodePort": 30007}]}
    answers = posts(servers, path, [{"metadata": {"name": f"t{number}"}, "spec": spec} for number in range(8)])
    assert Counter(code for code, _ in answers) == {201: 1, 422: 7}
    assert all("already allocated" in status["message"] for code, status in answers if code == 422)
    _, listed = servers[1].request("GET", "/apis/networking.k8s.io/v1/ipaddresses")
    assert [one["metadata"]["name"] for one in listed["items"]] == ["10.0.0.1", "10.0.0.40"]


def test_eviction_race(servers: list[AdvertisedServer], namespace: str) -> None:
    """Concurrent evictions at both servers delete no more pods than the budget allows."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for number in range(8):
        pod = {
            "metadata": {"name": f"p{number}", "labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
        }
        assert servers[0].request("POST", pods, pod)[0] == 201
        status = {
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        }
        patched = servers[0].request(
            "PATCH", f"{pods}/p{number}/status", status, content_type="application/merge-patch+json"
        )
        assert patched[0] == 200
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 5, "selector": {"matchLabels": {"app": "a"}}}
    code, created = servers[0].request("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
    assert code == 201
    created["status"] = {
        "observedGeneration": created["metadata"].get("generation", 1),
        "disruptionsAllowed": 3,
        "currentHealthy": 8,
        "desiredHealthy": 5,
        "expectedPods": 8,
    }
    assert servers[0].request("PUT", f"{budgets}/b/status", created)[0] == 200
    calls = [
        lambda server=servers[number % 2], name=f"p{number}": server.request(
            "POST",
            f"{pods}/{name}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
        )
        for number in range(8)
    ]
    codes = Counter(code for code, _ in at_once(calls))
    assert codes[201] == 3 and set(codes) <= {201, 429}, codes
    assert len(servers[1].request("GET", pods)[1]["items"]) == 5


def test_endpoints(servers: list[AdvertisedServer], etcd: EtcdServer, tmp_path: Path, namespace: str) -> None:
    """
    The endpoints contain the running servers: a new one immediately, a stopped one no longer, a killed one not for
    long.
    """
    both = ["192.0.2.1", "192.0.2.2"]
    eventually(lambda: endpoints(servers[0]) == both)
    value, _ = stored(etcd, "/registry/masterleases/192.0.2.1")
    assert json.loads(value)["subsets"] == [{"addresses": [{"ip": "192.0.2.1"}]}]
    for clean in (True, False):
        with AdvertisedServer(etcd, "192.0.2.3", "--controllers=") as third:
            eventually(lambda: endpoints(servers[0]) == [*both, "192.0.2.3"])
            if clean:
                third.stop()
                assert endpoints(servers[1]) == both
            else:
                third.kill()
                eventually(lambda: endpoints(servers[1]) == both)
    _, leases = servers[0].request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
    (lease,) = [one for one in leases["items"] if one["metadata"]["name"].startswith("apiserver-")]
    assert lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"] == "kube-apiserver"
    assert lease["spec"]["holderIdentity"].startswith(f"{lease['metadata']['name']}_")


def test_simultaneous_start(tmp_path: Path) -> None:
    """Servers that start simultaneously on an empty etcd create all bootstrap objects once."""
    with EtcdServer() as etcd:
        flags = ("--service-cluster-ip-range=10.0.0.0/26",)
        created = [AdvertisedServer(etcd, f"192.0.2.{number}", *flags) for number in (1, 2)]
        try:
            at_once([one.start for one in created])
            for path, least in (
                ("/api/v1/namespaces", 4),
                ("/apis/rbac.authorization.k8s.io/v1/clusterroles", 60),
                ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", 11),
                ("/apis/scheduling.k8s.io/v1/priorityclasses", 2),
                ("/apis/apiregistration.k8s.io/v1/apiservices", 20),
                ("/apis/networking.k8s.io/v1/ipaddresses", 1),
            ):

                def both_agree(path: str = path, least: int = least) -> bool:
                    # Controllers, such as the aggregation of roles, still write after the start.
                    lists = [one.request("GET", path)[1]["items"] for one in created]
                    return bool(lists[0] == lists[1] and len(lists[0]) >= least)

                eventually(both_agree)
            _, service = created[1].request("GET", "/api/v1/namespaces/default/services/kubernetes")
            assert service["spec"]["clusterIP"] == "10.0.0.1"
            eventually(lambda: endpoints(created[0]) == ["192.0.2.1", "192.0.2.2"])
            # Controllers run at one of the servers, and handle writes at the other server, too.
            assert created[0].request("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})[0] == 201
            account = "/api/v1/namespaces/new/serviceaccounts/default"
            eventually(lambda: created[1].request("GET", account)[0] == 200)
        finally:
            for one in created:
                one.__exit__(None, None, None)
                assert not one.data_dir.exists()
