"""Tests for L{kubetwist.cli.flags.metrics} and their effect on C{/metrics}."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from twisted.internet.threads import deferToThread
from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.testing.trial import KubeAPIMixin

_KEYS = (
    "must have keys with format `metricName,labelName` where metricName matches"
    ' "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"'
)


def parsed(*arguments: str) -> Options:
    """Parse a command line."""
    options = Options()
    options.parseOptions(list(arguments))
    return options


class MetricFlagTests(SynchronousTestCase):
    """Parsing of metrics flags."""

    def assert_rejected(self, message: str, *arguments: str) -> None:
        """Assert that a command line is rejected with a message."""
        error = self.assertRaises(UsageError, parsed, *arguments)
        self.assertEqual(str(error), message)

    def test_hidden(self) -> None:
        """--show-hidden-metrics-for-version accepts only the previous release."""
        self.assertFalse(parsed().metrics_options.hidden)
        self.assertTrue(parsed("--show-hidden-metrics-for-version=1.35").metrics_options.hidden)
        self.assertTrue(
            parsed("--kubernetes-version=1.30", "--show-hidden-metrics-for-version=1.29").metrics_options.hidden
        )
        self.assert_rejected(
            "metrics.showHiddenMetricsForVersion: Invalid value: \"1.36\": must be omitted or have the value '1.35';"
            " only the previous minor version is allowed",
            "--show-hidden-metrics-for-version=1.36",
        )

    def test_disabled(self) -> None:
        """Repeated flags are merged. Invalid metric names are rejected."""
        options = parsed("--disabled-metrics=a,b", "--disabled-metrics=c").metrics_options
        self.assertEqual(options.disabled, {"a", "b", "c"})
        self.assert_rejected(
            'metrics.disabledMetrics: Invalid value: ["a","a-b"]: must be fully qualified metric names matching'
            ' "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "a-b"',
            "--disabled-metrics=a,a-b",
        )

    def test_labels(self) -> None:
        """Allowed label values are given as CSV, or in repeated flags."""
        flag = "--allow-metric-labels"
        self.assertEqual(parsed(f"{flag}=a,b=1,2").metrics_options.allowed, {("a", "b"): {"1", "2"}})
        several = parsed(f'{flag}="a,b=1,2","a,c=3"', f"{flag}=d,e=").metrics_options.allowed
        self.assertEqual(several, {("a", "b"): {"1", "2"}, ("a", "c"): {"3"}, ("d", "e"): {""}})
        self.assert_rejected(f'metrics.allowListMapping: Invalid value: {{"a":"1"}}: {_KEYS}', f"{flag}=a=1")
        self.assert_rejected(f'invalid argument "a" for "{flag}" flag: a must be formatted as key=value', f"{flag}=a")

    def test_manifest(self) -> None:
        """Allowed label values can be in a manifest, but not in both."""
        path = Path(self.mktemp())
        flag = f"--allow-metric-labels-manifest={path}"
        self.assert_rejected(
            f'metrics.allowListMappingManifest: Invalid value: "{path}": failed to read allow list manifest: No such'
            f" file or directory: {path}",
            flag,
        )
        path.write_text('"a,b": "1,2"\n"c,d": ""\n')
        self.assertEqual(parsed(flag).metrics_options.allowed, {("a", "b"): {"1", "2"}, ("c", "d"): {""}})
        self.assert_rejected(
            'metrics: Invalid value: {"a,b":"1"}: cannot specify both allowListMapping and allowListMappingManifest',
            flag,
            "--allow-metric-labels=a,b=1",
        )
        begin = f'metrics.allowListMappingManifest: Invalid value: "{path}": '
        path.write_text("a: 1\n")
        self.assert_rejected(
            f'{begin}invalid allow list mapping in manifest: metrics: Invalid value: {{"a":"1"}}: {_KEYS}', flag
        )
        path.write_text("- a\n")
        self.assert_rejected(f"{begin}failed to parse allow list manifest: it is not a mapping", flag)
        path.write_text("a: [\n")
        error = self.assertRaises(UsageError, parsed, flag)
        self.assertIn(f"{begin}failed to parse allow list manifest: yaml: ", str(error))


class ServedMetricsTests(KubeAPIMixin, TestCase):
    """C{/metrics} of running servers."""

    timeout = 60

    async def test_flags(self) -> None:
        """The flags select the exposed metrics."""
        server = await self.startKubeAPI(
            "--controllers=",
            "--disabled-metrics=apiserver_response_sizes",
            "--allow-metric-labels=apiserver_request_total,verb=GET,LIST",
        )
        request: Any = server.connection.request
        await deferToThread(request, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        await deferToThread(request, "GET", "/api/v1/namespaces/default/configmaps")
        _, text = await deferToThread(request, "GET", "/metrics")
        self.assertNotIn("apiserver_response_sizes", text)
        self.assertIn('apiserver_request_total{verb="LIST"', text)
        self.assertIn('apiserver_request_total{verb="unexpected"', text)
        self.assertNotIn('apiserver_request_total{verb="POST"', text)
        self.assertIn("# HELP apiserver_request_total [STABLE] ", text)
        self.assertIn("\ndisabled_metrics_total 1\n", text)

    async def test_reset(self) -> None:
        """DELETE resets the metrics for authorized users. Other users get 403."""
        server = await self.startKubeAPI("--controllers=", "--authorization-mode=RBAC")
        request: Any = server.connection.request
        path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
        for _ in range(2):
            await deferToThread(request, "GET", path)
        label = 'resource="flowschemas",subresource="",scope="cluster"'
        _, text = await deferToThread(request, "GET", "/metrics")
        self.assertIn(label, text)
        self.assertEqual(await deferToThread(request, "DELETE", "/metrics"), (200, "metrics reset\n"))
        _, text = await deferToThread(request, "GET", "/metrics")
        self.assertNotIn(
            f'apiserver_request_total{{verb="LIST",group="flowcontrol.apiserver.k8s.io",version="v1",{label}', text
        )
        await deferToThread(request, "GET", path)
        _, text = await deferToThread(request, "GET", "/metrics")
        (line,) = [line for line in text.splitlines() if line.startswith("apiserver_request_total{") and label in line]
        self.assertTrue(line.endswith(" 1"), line)
        self.assertEqual(await deferToThread(request, "DELETE", "/metrics/slis"), (200, "metrics reset\n"))

    async def test_no_counts(self) -> None:
        """Without the count of objects, all other metrics are exposed."""
        server = await self.startKubeAPI("--controllers=", "--etcd-count-metric-poll-period=0")
        _, text = await deferToThread(server.connection.request, "GET", "/metrics")
        for name in (
            "apiserver_resource_objects",
            "apiserver_storage_objects",
            "apiserver_resource_size_estimate_bytes",
        ):
            self.assertNotIn(f"{name}{{", text)
        self.assertIn("apiserver_watch_cache_resource_version{", text)

    async def test_forms(self) -> None:
        """The response is compressed if the client accepts gzip. Other Accept headers do not change the format."""
        server = await self.startKubeAPI("--controllers=")
        connection = server.connection

        def read(**headers: str) -> tuple[Any, bytes]:
            fields = {"Authorization": f"Bearer {connection.token}"}
            fields |= {name.replace("_", "-"): value for name, value in headers.items()}
            request = Request(f"{connection.url}/metrics", headers=fields)
            with urlopen(request, context=connection.ssl_context(), timeout=30) as response:
                return response.headers, response.read()

        openmetrics = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        headers, plain = await deferToThread(read, Accept=openmetrics)
        self.assertTrue(headers["content-type"].startswith("text/plain; version=0.0.4; charset=utf-8"))
        self.assertIsNone(headers["content-encoding"])
        headers, packed = await deferToThread(read, Accept_Encoding="gzip")
        self.assertEqual(headers["content-encoding"], "gzip")
        self.assertLess(10 * len(packed), len(plain))
        self.assertIn(b"\n# TYPE version_info gauge\n", gzip.decompress(packed))

    async def test_authorization(self) -> None:
        """A user who may only read metrics cannot reset them."""
        server = await self.startKubeAPI("--controllers=", "--authorization-mode=RBAC")
        account = "/api/v1/namespaces/default/serviceaccounts"
        request: Any = server.connection.request
        await deferToThread(request, "POST", account, {"metadata": {"name": "a"}})
        _, response = await deferToThread(request, "POST", f"{account}/a/token", {"spec": {}})
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": "a"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:monitoring"}
        binding = {"metadata": {"name": "a"}, "roleRef": role, "subjects": [subject]}
        await deferToThread(request, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        for token, codes in ((response["status"]["token"], (200, 403)), ("", (403, 403))):
            ask = server.connection.with_token(token).request
            found = [(await deferToThread(ask, method, "/metrics"))[0] for method in ("GET", "DELETE")]
            self.assertEqual(tuple(found), codes)

    async def test_no_reset(self) -> None:
        """Without profiling a DELETE is answered like a GET, as in kube-apiserver."""
        server = await self.startKubeAPI("--controllers=", "--profiling=false")
        code, text = await deferToThread(server.connection.request, "DELETE", "/metrics")
        self.assertEqual(code, 200)
        self.assertIn("# TYPE ", text)
