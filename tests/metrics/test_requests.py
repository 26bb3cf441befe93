"""Tests for L{kubetwist.metrics.requests}."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPSConnection
from urllib.request import Request, urlopen

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing.trial import KubeAPIMixin
from tests.metrics.servercase import MetricsTestCase

PODS = "/api/v1/namespaces/default/pods"


class RequestTests(MetricsTestCase):
    """Tests for L{kubetwist.metrics.requests}."""

    async def test_requests(self) -> None:
        """Requests are counted and timed by verb, resource and status code."""
        for _ in range(3):
            await self.ask("GET", PODS)
        await self.ask("GET", f"{PODS}/none")
        listed = {"verb": "LIST", "resource": "pods", "version": "v1", "scope": "namespace", "component": "apiserver"}
        self.assertEqual(await self.counted("apiserver_request_total", code="200", **listed), 3)
        self.assertEqual(await self.counted("apiserver_request_duration_seconds_count", **listed), 3)
        self.assertEqual(await self.counted("apiserver_request_sli_duration_seconds_count", **listed), 3)
        self.assertEqual(await self.counted("apiserver_response_sizes_count", **listed), 3)
        self.assertEqual(await self.counted("apiserver_request_total", verb="GET", resource="pods", code="404"), 1)

    async def test_many(self) -> None:
        """Every request is counted once in every metric, independent of the time of scrapes."""
        asked = {"verb": "GET", "resource": "configmaps", "version": "v1", "scope": "resource"}
        path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"

        async def counts() -> list[float]:
            names = ("authentication_attempts", "authorization_attempts_total", "authenticated_user_requests")
            names += ("authentication_duration_seconds_count", "authorization_duration_seconds_count")
            # The request that reads the metrics is counted when it ends.
            return [await self.counted(name) - place for place, name in enumerate(names)]

        before = await counts()
        for number in range(130):
            await self.ask("GET", path)
            if number == 40:
                self.assertEqual(await self.counted("apiserver_request_duration_seconds_count", **asked), 41)
        after = await counts()
        self.assertEqual([after[place] - before[place] for place in range(5)], [130 + 1 + 5] * 5)
        for name in ("request_total", "request_duration_seconds_count", "response_sizes_count"):
            self.assertEqual(await self.counted(f"apiserver_{name}", **asked), 130, name)

    async def test_impersonated(self) -> None:
        """An impersonated request is counted for the impersonating user."""
        connection = self.server.connection

        def ask() -> int:
            headers = {"Authorization": f"Bearer {connection.token}", "Impersonate-User": "jane@example.com"}
            client = HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context())
            with closing(client):
                client.request("GET", PODS, headers=headers)
                return client.getresponse().status

        before = await self.counted("authenticated_user_requests")
        self.assertEqual(await deferToThread(ask), 403)
        # One for each counted request, and the previous one that read the metrics.
        self.assertEqual(await self.counted("authenticated_user_requests"), before + 2)
        self.assertEqual(await self.counted("authenticated_user_requests", username="email_id"), 0)

    async def test_verbs(self) -> None:
        """An apply is counted as APPLY, a dry run has its label, and a watch is counted while it is open."""
        path = "/api/v1/namespaces/default/configmaps"
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        await self.ask("POST", f"{path}?dryRun=All", obj)
        await self.ask("PATCH", f"{path}/a?fieldManager=m", obj, content_type="application/apply-patch+yaml")
        await self.ask("PATCH", f"{path}/a", {"data": {"a": "b"}}, content_type="application/merge-patch+json")
        for verb, dry_run in (("POST", "All"), ("APPLY", ""), ("PATCH", "")):
            labels = {"verb": verb, "dry_run": dry_run, "resource": "configmaps", "scope": "resource"}
            self.assertEqual(await self.counted("apiserver_request_total", **labels), 1, verb)
        await self.ask("GET", f"{path}?watch=true&timeoutSeconds=1")
        self.assertEqual(await self.counted("apiserver_request_total", verb="WATCH", resource="configmaps"), 1)

    async def test_writes(self) -> None:
        """Body sizes, field validation and deprecated APIs are recorded."""
        path = "/api/v1/namespaces/default/configmaps"
        body = {"metadata": {"name": "big"}, "data": {"a": "x" * 60000}}
        await self.ask("POST", f"{path}?fieldValidation=Strict", body)
        await self.ask("POST", f"{path}?fieldValidation=madeup", body)
        written = {"resource": "configmaps", "verb": "create"}
        self.assertEqual(await self.counted("apiserver_request_body_size_bytes_bucket", le="50000", **written), 0)
        self.assertEqual(await self.counted("apiserver_request_body_size_bytes_count", **written), 2)
        for kind in ("Strict", "invalid"):
            name = "field_validation_request_duration_seconds_count"
            self.assertEqual(await self.counted(name, field_validation=kind), 1, kind)
        name = "apiserver_requested_deprecated_apis"
        self.assertEqual(await self.counted(name), 0)
        await self.ask("GET", "/api/v1/namespaces/default/endpoints")
        self.assertEqual(await self.counted(name, resource="endpoints", version="v1", removed_release=""), 1)

    async def test_long_running(self) -> None:
        """A watch raises the number of long-running requests, and lowers it at its end."""
        connection = self.server.connection
        labels = {"verb": "WATCH", "resource": "configmaps", "scope": "namespace", "version": "v1"}
        name = "apiserver_longrunning_requests"
        self.assertEqual(await self.counted(name, **labels), 0)
        request = Request(
            f"{connection.url}/api/v1/namespaces/default/configmaps?watch=true",
            headers={"Authorization": f"Bearer {connection.token}"},
        )
        watch = await deferToThread(urlopen, request, context=connection.ssl_context(), timeout=30)
        self.assertEqual(await self.counted(name, **labels), 1)
        watch.close()
        # The server reads the end of the connection before a request that arrives later.
        while await self.counted(name, **labels):
            pass
        _, text = await self.ask("GET", "/metrics")
        self.assertIn(f'{name}{{verb="WATCH"', text)

    async def test_comparisons(self) -> None:
        """Updates are counted by the comparison of the new and the stored object."""
        path = "/api/v1/namespaces/default/configmaps"
        merge = "application/merge-patch+json"
        await self.ask("POST", path, {"metadata": {"name": "t"}, "data": {"a": "b"}})
        name = "apiserver_request_timestamp_comparison_time_count"
        before = await self.counted(name, code_path="unequal_objects_fast")
        for value in ("c", "d"):
            code, _ = await self.ask("PATCH", f"{path}/t", {"data": {"a": value}}, content_type=merge)
            self.assertEqual(code, 200)
        self.assertEqual(await self.counted(name, code_path="unequal_objects_fast"), before + 2)

    async def test_watch_counts(self) -> None:
        """The number of watches of an object is observed with each write."""
        connection = self.server.connection
        path = "/api/v1/namespaces/default/configmaps"
        name = "apiserver_flowcontrol_watch_count_samples"
        before = await self.counted(f"{name}_sum"), await self.counted(f"{name}_count")
        watches = []
        for place in ("/api/v1/configmaps", path, "/api/v1/namespaces/other/configmaps"):
            request = Request(
                f"{connection.url}{place}?watch=true", headers={"Authorization": f"Bearer {connection.token}"}
            )
            watches.append(await deferToThread(urlopen, request, context=connection.ssl_context(), timeout=30))
        await self.ask("POST", path, {"metadata": {"name": "w"}})
        after = await self.counted(f"{name}_sum"), await self.counted(f"{name}_count")
        for watch in watches:
            watch.close()
        self.assertEqual((after[0] - before[0], after[1] - before[1]), (2, 1))

    async def test_storage_lists(self) -> None:
        """The list that fills the watch cache of a resource is counted, also without objects."""
        self.assertEqual(await self.counted("apiserver_storage_list_total", resource="configmaps"), 1)
        _, text = await self.ask("GET", "/metrics")
        for name in ("fetched", "evaluated", "returned"):
            name = f"apiserver_storage_list_{name}_objects_total"
            self.assertIn(f'{name}{{group="",resource="configmaps"}}', text)

    async def test_terminations(self) -> None:
        """Requests that the server terminated are counted by status code."""
        # Wait for the late response of the handler.
        code, _ = await self.ask("GET", "/api/v1/nodes?resourceVersion=999999999&timeout=50ms")
        self.assertEqual(code, 504)
        labels = {"verb": "LIST", "resource": "nodes", "code": "504"}
        self.assertEqual(await self.counted("apiserver_request_terminations_total", **labels), 1)

    async def test_storage(self) -> None:
        """Storage requests are timed by operation, and admission plugins by operation."""
        path = "/api/v1/namespaces/default/configmaps"
        names = ("etcd_requests_total", "etcd_request_duration_seconds_count")

        async def asked() -> list[float]:
            return [
                await self.counted(name, operation=operation, resource="configmaps")
                for name in names
                for operation in ("create", "update", "delete")
            ]

        before = await asked()
        await self.ask("POST", path, {"metadata": {"name": "s"}})
        await self.ask("PATCH", f"{path}/s", {"data": {"a": "b"}}, content_type="application/merge-patch+json")
        await self.ask("DELETE", f"{path}/s")
        self.assertEqual(await asked(), [count + 1 for count in before])
        name = "apiserver_admission_controller_admission_duration_seconds_count"
        labels = {"name": "NamespaceLifecycle", "type": "admit", "operation": "CREATE"}
        accepted = await self.counted(name, rejected="false", **labels)
        await self.ask("POST", "/api/v1/namespaces/none/configmaps", {"metadata": {"name": "s"}})
        self.assertEqual(await self.counted(name, rejected="true", **labels), 1)
        self.assertEqual(await self.counted(name, rejected="false", **labels), accepted)

    async def test_closed_labels(self) -> None:
        """CVE-2020-8552: labels contain no values of clients: no unknown resources, paths, verbs or names."""
        await self.ask("GET", "/apis/made.up/v1/things")
        await self.ask("GET", "/api/v1/madeup")
        await self.ask("GET", f"{PODS}/a/madeup")
        await self.ask("GET", "/madeup")
        await self.ask("GET", "/api/v1/watch")
        await self.ask("MADEUP", PODS)
        await self.ask("GET", f"{PODS}?dryRun=madeup")
        await self.ask("GET", PODS, token="madeup")
        _, text = await self.ask("GET", "/metrics")
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual([line for line in samples if "made" in line], [])
        self.assertEqual(self.flushLoggedErrors(), [])

    async def test_access(self) -> None:
        """Authentications and authorizations are counted by result."""
        unknown = await self.counted("authentication_attempts", result="failure")
        allowed = await self.counted("authorization_attempts_total", result="allowed")
        denied = await self.counted("authorization_attempts_total", result="no-opinion")
        await self.ask("GET", PODS, token="nobody")
        await self.ask("GET", PODS, token="")
        await self.ask("GET", PODS)
        self.assertEqual(await self.counted("authentication_attempts", result="failure"), unknown + 1)
        self.assertEqual(await self.counted("authorization_attempts_total", result="no-opinion"), denied + 1)
        self.assertGreater(await self.counted("authorization_attempts_total", result="allowed"), allowed + 1)

    async def test_custom_resources(self) -> None:
        """Custom resources are counted like built-in resources."""
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
        crd = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
        code, response = await self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        self.assertEqual(code, 201, response)
        await self.server.settle()
        self.assertEqual((await self.ask("GET", "/apis/example.com/v1/widgets"))[0], 200)
        labels = {"group": "example.com", "version": "v1", "resource": "widgets", "scope": "cluster", "code": "200"}
        self.assertEqual(await self.counted("apiserver_request_total", **labels), 1)

    async def test_caches_and_version(self) -> None:
        """The objects and events of caches, and the version of the server, are exposed."""
        labels = {"group": "", "resource": "configmaps"}
        before = await self.counted("apiserver_resource_objects", **labels)
        received = await self.counted("apiserver_watch_cache_events_received_total", **labels)
        await self.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "b"}})
        self.assertEqual(await self.counted("apiserver_resource_objects", **labels), before + 1)
        self.assertEqual(await self.counted("apiserver_storage_objects", resource="configmaps"), before + 1)
        self.assertEqual(await self.counted("apiserver_watch_cache_events_received_total", **labels), received + 1)
        self.assertGreater(await self.counted("apiserver_resource_size_estimate_bytes", **labels), 0)
        self.assertEqual(await self.counted("kubernetes_build_info", major="1", minor="36"), 1)

    async def test_unfilled_cache(self) -> None:
        """A cache that is filled on demand has no number of objects before."""
        labels = {"group": "", "resource": "configmaps"}
        await self.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "unfilled"}})
        self.assertGreater(await self.counted("apiserver_resource_objects", **labels), 0)
        service = self.server._service
        assert service is not None
        assert service.server is not None
        assert service.server.apis is not None
        cache = service.server.apis.registry.stores.get("", "configmaps").cache
        self.patch(cache.on_demand, "pending", True)
        self.assertEqual(await self.counted("apiserver_resource_objects", **labels), 0)
        self.assertEqual(await self.counted("apiserver_storage_objects", resource="configmaps"), 0)

    async def test_authorization(self) -> None:
        """Users without permission cannot read metrics."""
        code, _ = await self.ask("GET", "/metrics", token="")
        self.assertEqual(code, 403)
        self.assertEqual((await self.ask("GET", "/metrics/none"))[0], 404)


class ControllerMetricsTests(KubeAPIMixin, TestCase):
    """Metrics of controllers."""

    timeout = 60

    async def test_queues(self) -> None:
        """Work queues have metrics of adds, and of queue and work durations."""
        server = await self.startKubeAPI("--controllers=namespace-controller")
        connection = server.connection
        path = "/api/v1/namespaces"
        await deferToThread(connection.request, "POST", path, {"metadata": {"name": "a"}})
        await deferToThread(connection.request, "DELETE", f"{path}/a")
        await server.settle()
        _, text = await deferToThread(connection.request, "GET", "/metrics")
        for name in ("adds_total", "queue_duration_seconds_count", "work_duration_seconds_count"):
            (line,) = [one for one in text.splitlines() if one.startswith(f"workqueue_{name}{{")]
            self.assertGreater(float(line.split()[-1]), 0, line)
