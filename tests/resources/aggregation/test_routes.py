"""Tests for L{kubetwist.resources.aggregation.routes}: requests to aggregated servers."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis.strategies import binary

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.server import NOT_DONE_YET

from kubetwist.resources.aggregation import routes as aggregation
from kubetwist.resources.aggregation.routes import normalized_target
from kubetwist.server import watchedfiles
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.errors import StartError
from kubetwist.testing.trial import KubeAPIMixin
from tests.resources.aggregation.aggregated import GROUP, HOME, NAME, SERVICES, AggregatedCase, Backend

THINGS = f"{HOME}/namespaces/default/things"


class TargetTests(SynchronousTestCase):
    """The path and query that are sent to an aggregated server."""

    def test_normalized(self) -> None:
        """Paths and queries are unescaped and escaped again; parameters are sorted by name."""
        for asked, passed in (
            (b"/apis/g/v/things", b"/apis/g/v/things"),
            (b"/apis/g/v/%74hings/a%2Fb", b"/apis/g/v/things/a/b"),
            (b"/apis/g/v/things/", b"/apis/g/v/things/"),
            (b"/apis/g/v/a%20b?x=1", b"/apis/g/v/a%20b?x=1"),
            (b"/apis/g/v/a?watch=1&limit=5&a=b%20c&a=a", b"/apis/g/v/a?a=b+c&a=a&limit=5&watch=1"),
            (b"/apis/g/v/a?bad=%zz&;=1&good", b"/apis/g/v/a?good="),
            (b"/apis/g/v/a?", b"/apis/g/v/a"),
        ):
            self.assertEqual(normalized_target(asked), passed)

    @given(binary())
    def test_any_bytes(self, uri: bytes) -> None:
        """For any request target, the forwarded target stays within the request line."""
        self.assertRegex(normalized_target(b"/" + uri), rb"\A[\x21-\x7e]*\Z")


class ProxyTests(AggregatedCase):
    """Forwarded requests and their responses."""

    async def test_forwarded(self) -> None:
        """A request for a group-version with a service is answered by the server behind it."""
        await self.begin()
        self.backend.answers[THINGS] = self._created
        code, answer, fields = await self.ask("POST", f"{THINGS}?b=2&a=1", {"kind": "Thing"}, {"X-Mine": "yes"})
        self.assertEqual((code, json.loads(answer)), (201, {"kind": "Thing"}))
        self.assertEqual(fields["x-theirs"], "too")
        received = self.backend.received[-1]
        self.assertEqual((received.method, received.target), ("POST", f"{THINGS}?a=1&b=2"))
        self.assertEqual(json.loads(received.body), {"kind": "Thing"})
        self.assertEqual(received.fields["x-mine"], ["yes"])
        self.assertEqual(received.fields["host"], ["10.0.0.77:443"])
        self.assertEqual(received.fields["audit-id"], [fields["audit-id"]])
        self.assertEqual(received.fields["x-forwarded-host"], ["10.0.0.77:443"])
        self.assertEqual(received.fields["x-forwarded-proto"], ["https"])
        self.assertEqual(received.fields["x-forwarded-uri"], [THINGS])
        self.assertEqual(received.client, "front-proxy-client")

    def _created(self, request: Any) -> Any:
        request.setResponseCode(201)
        request.setHeader(b"x-theirs", b"too")
        return {"kind": "Thing"}

    async def test_2019_16276_identity_is_ours(self) -> None:
        """The server sets the identity headers; identity headers and credentials of the client are removed."""
        await self.begin("--requestheader-username-headers=X-Boss", "--requestheader-group-headers=X-Gang")
        claims = {
            "X-Remote-User": "root",
            "X-Remote-Uid": "0",
            "X-Remote-Group": "system:masters",
            "X-Remote-Extra-Scopes": "all",
            "X_Remote_User": "root",
            "X-Boss": "root",
            "X-Gang": "system:masters",
        }
        await self.ask("GET", THINGS, headers=claims)
        fields = self.backend.received[-1].fields
        self.assertEqual(fields["x-remote-user"], ["kubetwist-test-admin"])
        self.assertIn("system:masters", fields["x-remote-group"])
        self.assertNotIn("0", fields.get("x-remote-uid", ()))
        for name in ("authorization", "x-remote-extra-scopes", "x_remote_user", "x-boss", "x-gang"):
            self.assertNotIn(name, fields)

    async def test_impersonated(self) -> None:
        """An impersonated user is the user for the aggregated server; keys of extra values are escaped."""
        await self.begin()
        await self.ask(
            "GET",
            THINGS,
            headers={
                "Impersonate-User": "jane",
                "Impersonate-Group": "system:masters",
                "Impersonate-Uid": "7",
                "Impersonate-Extra-Acme.com%2Fproject": "one",
            },
        )
        fields = self.backend.received[-1].fields
        self.assertEqual((fields["x-remote-user"], fields["x-remote-uid"]), (["jane"], ["7"]))
        self.assertEqual(fields["x-remote-group"], ["system:masters", "system:authenticated"])
        self.assertEqual(fields["x-remote-extra-acme.com%2fproject"], ["one"])
        self.assertEqual([name for name in fields if name.startswith("impersonate")], [])

    async def test_no_uid(self) -> None:
        """Without the feature gate RemoteRequestHeaderUID the aggregated server receives no uid."""
        await self.begin("--feature-gates=RemoteRequestHeaderUID=false")
        impersonated = {"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Group": "system:masters"}
        await self.ask("GET", THINGS, headers=impersonated)
        fields = self.backend.received[-1].fields
        self.assertEqual((fields["x-remote-user"], fields.get("x-remote-uid")), (["jane"], None))

    async def test_traced(self) -> None:
        """The aggregated server receives the trace context of this server instead of the client's."""
        file = Path(self.mktemp())
        about = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        file.write_text(json.dumps({**about, "endpoint": "unix:///nowhere"}))
        await self.begin(f"--tracing-config-file={file.absolute()}")
        trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        sent = {"traceparent": f"00-{trace}-{span}-00", "tracestate": "a=1", "baggage": "who=me"}
        await self.ask("GET", THINGS, headers=sent)
        fields = self.backend.received[-1].fields
        self.assertRegex(*fields["traceparent"], f"^00-{trace}-(?!{span})[0-9a-f]{{16}}-00$")
        self.assertEqual((fields["tracestate"], fields["baggage"]), (["a=1"], ["who=me"]))
        await self.ask("GET", THINGS, headers={"traceparent": "nonsense", "tracestate": "a=1", "baggage": "non sense"})
        fields = self.backend.received[-1].fields
        self.assertRegex(*fields["traceparent"], "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$")
        self.assertEqual((fields.get("tracestate"), fields.get("baggage")), (None, None))

    async def test_2022_3172_redirect(self) -> None:
        """A redirect of an aggregated server is an error: it is neither followed nor passed on."""
        await self.begin()

        def redirected(request: Any) -> Any:
            request.setResponseCode(302)
            request.setHeader(b"location", b"https://10.0.0.77/stolen")
            return {}

        self.backend.answers[THINGS] = redirected
        code, answer, fields = await self.ask("GET", THINGS)
        self.assertEqual(code, 502)
        self.assertEqual(answer, b"the backend attempted to redirect this request, which is not permitted")
        self.assertNotIn("location", fields)
        self.assertEqual([one.path for one in self.backend.received], [THINGS])

    async def test_not_changed(self) -> None:
        """A 304 is not a redirect."""
        await self.begin()

        def same(request: Any) -> Any:
            request.setResponseCode(304)
            request.setHeader(b"etag", b'"x"')
            request.finish()
            return NOT_DONE_YET

        self.backend.answers[THINGS] = same
        code, _, fields = await self.ask("GET", THINGS, headers={"If-None-Match": '"x"'})
        self.assertEqual((code, fields["etag"]), (304, '"x"'))
        self.assertEqual(self.backend.received[-1].fields["if-none-match"], ['"x"'])

    async def test_loop(self) -> None:
        """A request that has passed too many proxies is answered 508."""
        await self.begin()
        code, _, _ = await self.ask("GET", THINGS, headers={"X-Forwarded-For": ", ".join(["10.0.0.1"] * 16)})
        self.assertEqual(code, 200)
        self.assertEqual(self.backend.received[-1].fields["x-forwarded-for"][0].count(","), 16)
        code, answer, _ = await self.ask("GET", THINGS, headers={"X-Forwarded-For": ", ".join(["10.0.0.1"] * 17)})
        self.assertEqual((code, len(self.backend.received)), (508, 1), answer)

    async def test_not_allowed(self) -> None:
        """Authorization comes first: a request that is not allowed is not forwarded."""
        await self.begin()
        code, answer, _ = await self.ask("GET", THINGS, headers={"Impersonate-User": "jane"})
        self.assertEqual((code, json.loads(answer)["reason"]), (403, "Forbidden"))
        self.assertEqual(self.backend.received, [])

    async def passing(self) -> None:
        """Wait until a watch is forwarded; the backend may have received it before its response arrived."""
        watches = self.server._service.server.site.open_requests
        await self.until(lambda: any(one.startedWriting for one in watches if one.uri == f"{THINGS}?watch=1".encode()))

    async def test_killed_in_a_watch(self) -> None:
        """If the aggregated server is killed during a response, the client receives a truncated response."""
        await self.begin()

        def endless(request: Any) -> Any:
            request.setHeader(b"content-type", b"application/json")
            request.write(b'{"type":"ADDED"}\n')
            return NOT_DONE_YET

        self.backend.answers[THINGS] = endless
        asked = Deferred.fromCoroutine(self.ask("GET", f"{THINGS}?watch=1"))
        await self.passing()
        await self.backend.kill()
        await self.assertFailure(asked, http.client.IncompleteRead)

    async def test_stop_in_a_watch(self) -> None:
        """A server that stops aborts the watches of aggregated servers instead of waiting for them."""
        await self.begin("--request-timeout=1h")
        closed: list[Any] = []

        def endless(request: Any) -> Any:
            request.notifyFinish().addErrback(closed.append)
            if b"late" not in request.uri:
                request.write(b'{"type":"ADDED"}\n')
            return NOT_DONE_YET

        self.backend.answers[THINGS] = endless
        started = Deferred.fromCoroutine(self.ask("GET", f"{THINGS}?watch=1"))
        late = Deferred.fromCoroutine(self.ask("GET", f"{THINGS}?watch=1&late=1"))
        await self.until(lambda: len(self.backend.received) == 2)
        await self.passing()
        await self.server.stop()
        await self.assertFailure(started, http.client.IncompleteRead)
        self.assertEqual((await late)[0], 503)
        await self.until(lambda: len(closed) == 2)

    async def test_upload(self) -> None:
        """A body larger than the size limit of this server is forwarded."""
        await self.begin()
        body = b"x" * (5 * 1024 * 1024)
        code, answer, _ = await self.ask("PUT", f"{THINGS}/big", body, {"Content-Type": "application/octet-stream"})
        self.assertEqual(code, 200, answer[:200])
        self.assertEqual(len(self.backend.received[-1].body), len(body))

    async def test_own_certificate(self) -> None:
        """Aggregated servers receive the certificate of --proxy-client-cert-file, also after it was replaced."""
        self.patch(watchedfiles, "POLL_INTERVAL", 0.02)
        folder = Path(self.mktemp()).resolve()
        folder.mkdir()
        authority = CertificateAuthority.make("proxies")

        def write(name: str) -> None:
            pair = authority.issue(CertConfig(name))
            (folder / "new.key").write_bytes(pair.key)
            (folder / "new.crt").write_bytes(pair.certificate)
            (folder / "new.key").rename(folder / "proxy.key")
            (folder / "new.crt").rename(folder / "proxy.crt")

        write("first")
        flags = (f"--proxy-client-cert-file={folder}/proxy.crt", f"--proxy-client-key-file={folder}/proxy.key")
        await self.begin(*flags)
        await self.ask("GET", THINGS)
        self.assertEqual(self.backend.received[-1].client, "first")
        write("second")

        async def shown() -> bool:
            await self.ask("GET", THINGS)
            return self.backend.received[-1].client == "second"

        await self.until(shown)
        await self.until(lambda: self.backend.probes[-1].client == "second")

    async def test_slow_discovery(self) -> None:
        """A discovery request to a slow server fails after a short timeout."""
        self.patch(aggregation, "DISCOVERY_TIMEOUT", 0.05)
        await self.begin()
        self.backend.answers[HOME] = lambda request: NOT_DONE_YET
        code, answer, _ = await self.ask("GET", HOME)
        self.assertEqual((code, answer[:31]), (503, b"error trying to reach service: "))


class UpgradeTests(AggregatedCase):
    """Upgraded connections."""

    def converse(self, *messages: bytes) -> list[bytes]:
        """
        Request a WebSocket, then send a message after each response; return everything received until the connection
        ends.
        """
        connection = self.server.connection
        parts = urlsplit(connection.url)
        context = ssl.create_default_context(cadata=connection.ca)
        head = (
            f"GET {THINGS}/talk?b=1&a=2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {connection.token}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nX-Remote-User: root\r\n\r\n"
        )
        answers = []
        plain = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)
        with context.wrap_socket(plain, server_hostname=parts.hostname) as link:
            link.sendall(head.encode())
            for one in messages:
                answers.append(link.recv(65536))
                link.sendall(one)
            rest = b""
            while data := link.recv(65536):
                rest += data
        return [*answers, rest]

    def switched(self, request: Any) -> Any:
        """Switch protocols, and echo everything twice until the end."""
        channel = request.channel
        channel.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )

        def received(data: bytes) -> None:
            channel.transport.write(data * 2)
            if data == b"enough":
                channel.transport.unregisterProducer()
                channel.transport.loseConnection()

        channel.dataReceived = received
        channel.setTimeout(None)
        # It is paused while a request is answered.
        channel._networkProducer.resumeProducing()
        return NOT_DONE_YET

    async def test_switched(self) -> None:
        """After the 101 all data is relayed unchanged in both directions; the server sets the identity headers."""
        await self.begin()
        self.backend.answers[f"{THINGS}/talk"] = self.switched
        head, one, rest = await deferToThread(self.converse, b"hello", b"enough")
        self.assertTrue(head.startswith(b"HTTP/1.1 101 "), head)
        self.assertEqual((one, rest), (b"hellohello", b"enoughenough"))
        received = self.backend.received[-1]
        self.assertEqual(received.target, f"{THINGS}/talk?a=2&b=1")
        self.assertEqual(received.fields["x-remote-user"], ["kubetwist-test-admin"])
        self.assertNotIn("authorization", received.fields)
        self.assertEqual(received.client, "front-proxy-client")

    async def test_2018_1002105_not_switched(self) -> None:
        """
        If the aggregated server does not switch, no further data of the client reaches it, and both connections close.
        """
        await self.begin()

        def refused(request: Any) -> Any:
            request.setResponseCode(400)
            return {"no": "upgrade"}

        self.backend.answers[f"{THINGS}/talk"] = refused
        (answer,) = await deferToThread(self.converse)
        self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
        self.assertIn(b'{"no": "upgrade"}', answer)
        self.assertEqual(len(self.backend.received), 1)


class StartTests(KubeAPIMixin, TestCase):
    """Servers whose start fails."""

    async def test_bad_certificate(self) -> None:
        """--proxy-client-cert-file must name a certificate with its key."""
        folder = Path(self.mktemp()).resolve()
        folder.mkdir()
        (folder / "a").write_bytes(b"garbage")
        damaged = "cannot use the certificate for other API servers: it is damaged"
        for name, reason in (("a", damaged), ("b", f"cannot read {folder}/b: No such file or directory")):
            flags = [f"--proxy-client-{what}-file={folder / name}" for what in ("cert", "key")]
            starting = Deferred.fromCoroutine(self.startKubeAPI(*flags))
            error = await self.assertFailure(starting, StartError)
            self.assertEqual(str(error), reason)


class AvailableTests(AggregatedCase):
    """The availability of aggregated servers, and the responses while they are unavailable."""

    async def test_unavailable(self) -> None:
        """Requests to an unavailable server are not forwarded; its group is listed nevertheless."""
        self.backend = Backend()
        self.server = await self.startKubeAPI("--controllers=")
        await self.register(insecureSkipTLSVerify=True)
        for path in (HOME, THINGS, f"{HOME}/"):
            code, answer, fields = await self.ask("GET", path)
            self.assertEqual((code, answer), (503, b"service unavailable\n"))
            self.assertEqual(fields["x-content-type-options"], "nosniff")
        group = await self.done("GET", f"/apis/{GROUP}")
        self.assertEqual(group["preferredVersion"], {"groupVersion": f"{GROUP}/v1", "version": "v1"})
        code, answer, _ = await self.ask("GET", f"/apis/{GROUP}/v2/things")
        self.assertEqual((code, answer), (404, b"404 page not found\n"))
        await self.done("DELETE", f"{SERVICES}/{NAME}")
        for path in (HOME, f"/apis/{GROUP}", THINGS):
            code, answer, _ = await self.ask("GET", path)
            self.assertEqual((code, answer), (404, b"404 page not found\n"))

    async def test_order(self) -> None:
        """Groups and versions are listed by the priorities of their APIServices."""
        self.server = await self.startKubeAPI("--controllers=")
        for group, version, priority, of_version in (
            ("low.example.com", "v1", 100, 10),
            ("high.example.com", "v1beta1", 17850, 20),
            ("high.example.com", "v1", 10, 10),
            ("high.example.com", "v2", 10, 10),
        ):
            spec = {"group": group, "version": version, "groupPriorityMinimum": priority, "versionPriority": of_version}
            await self.done("POST", SERVICES, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})
        groups = (await self.done("GET", "/apis"))["groups"]
        names = [one["name"] for one in groups]
        self.assertEqual(names[:3], ["apiregistration.k8s.io", "high.example.com", "apps"])
        self.assertEqual(names[-1], "low.example.com")
        self.assertEqual([one["version"] for one in groups[1]["versions"]], ["v1beta1", "v2", "v1"])
        self.assertEqual(
            await self.done("GET", "/apis/high.example.com"), {"kind": "APIGroup", "apiVersion": "v1", **groups[1]}
        )
        await self.patch_object(f"{SERVICES}/v1.low.example.com", {"spec": {"groupPriorityMinimum": 20000}})
        self.assertEqual((await self.done("GET", "/apis"))["groups"][1]["name"], "low.example.com")

    async def test_reasons(self) -> None:
        """Problems of a service are reported with kube-apiserver's reasons, and their repair is detected."""
        self.backend = Backend()
        await self.backend.start()
        self.addCleanup(self.backend.kill)
        self.server = await self.startKubeAPI("--controllers=")
        self.divert()
        await self.register()
        found = await self.until_condition("ServiceNotFound")
        self.assertEqual(found["message"], 'service/far in "default" is not present')
        await self.make_service(ports=[{"name": "https", "port": 80}])
        found = await self.until_condition("ServicePortError")
        self.assertEqual(found["message"], 'service/far in "default" is not listening on port 443')
        service = "/api/v1/namespaces/default/services/far"
        await self.patch_object(service, {"spec": {"ports": [{"name": "https", "port": 443}]}})
        found = await self.until_condition("EndpointsNotFound")
        self.assertEqual(found["message"], 'cannot find endpointslices for service/far in "default"')
        changed = found["lastTransitionTime"]
        await self.make_slice(ready=False)
        found = await self.until_condition("MissingEndpoints")
        text = 'endpointslices for service/far in "default" have no addresses with port name "https"'
        self.assertEqual((found["message"], found["status"]), (text, "False"))
        self.assertEqual(found["lastTransitionTime"], changed)
        await self.make_slice(name="far-2")
        found = await self.until_condition("Passed")
        self.assertEqual((found["message"], found["status"]), ("all checks passed", "True"))
        table = await self.done(
            "GET", f"{SERVICES}/{NAME}", Accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        )
        self.assertEqual(table["rows"][0]["cells"][:3], [NAME, "default/far", "True"])
        probe = self.backend.probes[-1]
        self.assertEqual(probe.fields["x-remote-user"], ["system:kube-aggregator"])
        self.assertEqual(probe.fields["x-remote-group"], ["system:masters"])
        self.assertEqual(probe.client, "front-proxy-client")

    async def test_recovers(self) -> None:
        """A server that dies becomes unavailable and gets no requests; after its restart it is available again."""
        await self.begin()
        port = self.backend.port
        await self.backend.kill()
        await self.patch_object(f"{SERVICES}/{NAME}", {"metadata": {"labels": {"look": "again"}}})
        code, answer, _ = await self.ask("GET", THINGS)
        self.assertEqual(code, 503, answer)
        self.apis.availability.enqueue(NAME)
        found = await self.until_condition("FailedDiscoveryCheck")
        url = f"https://10.0.0.77:443{HOME}"
        self.assertEqual(
            found["message"],
            f'failing or missing response from {url}: Get "{url}": dial tcp 10.0.0.77:443: connect: connection refused',
        )
        self.assertEqual((await self.ask("GET", THINGS))[:2], (503, b"service unavailable\n"))
        _, counted, _ = await self.ask("GET", "/metrics")
        lines = counted.decode().splitlines()
        self.assertIn(f'aggregator_unavailable_apiservice{{name="{NAME}"}} 1', lines)
        self.assertIn('aggregator_unavailable_apiservice{name="v1.apps"} 0', lines)
        total = f'aggregator_unavailable_apiservice_total{{name="{NAME}",reason="FailedDiscoveryCheck"}} 1'
        self.assertIn(total, lines)
        await self.backend.start(port)
        await self.until_condition("Passed")
        self.assertEqual((await self.ask("GET", THINGS))[0], 200)

    async def test_bad_status(self) -> None:
        """A server whose discovery requests fail is unavailable."""
        await self.begin(available=False)
        self.backend.healthy = False
        self.apis.availability.enqueue(NAME)
        found = await self.until_condition("FailedDiscoveryCheck")
        url = f"https://10.0.0.77:443{HOME}"
        self.assertEqual(found["message"], f"failing or missing response from {url}: bad status from {url}: 500")

    async def test_other_authority(self) -> None:
        """A certificate of an authority that is not in the caBundle is rejected."""
        other = base64.b64encode(CertificateAuthority.make("other").pair.certificate).decode()
        await self.begin(available=False, caBundle=other)
        found = await self.until_condition("FailedDiscoveryCheck")
        self.assertIn(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority", found["message"]
        )
        self.assertEqual(self.backend.probes, [])

    async def test_bad_bundle(self) -> None:
        """An invalid caBundle is reported, and no connection is opened."""
        await self.begin(available=False, caBundle=base64.b64encode(b"garbage").decode())
        found = await self.until_condition("FailedDiscoveryCheck")
        self.assertIn("unable to load root certificates", found["message"])
        self.assertEqual(self.backend.probes, [])

    async def test_insecure(self) -> None:
        """With insecureSkipTLSVerify any certificate is accepted."""
        await self.begin(insecureSkipTLSVerify=True)
        self.assertEqual((await self.ask("GET", THINGS))[0], 200)

    async def test_2020_8562_this_machine(self) -> None:
        """A service that resolves to this machine is not connected to."""
        self.backend = Backend()
        self.server = await self.startKubeAPI("--controllers=")
        service = {
            "metadata": {"name": "far"},
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1.nip.invalid"},
        }
        service["spec"]["externalName"] = "localhost"
        await self.done("POST", "/api/v1/namespaces/default/services", service)
        await self.register(insecureSkipTLSVerify=True)
        found = await self.until_condition("FailedDiscoveryCheck")
        self.assertIn("address not allowed", found["message"])

    async def test_endpoints(self) -> None:
        """With --enable-aggregator-routing, connections go to endpoints of the service."""
        self.backend = Backend()
        await self.backend.start()
        self.addCleanup(self.backend.kill)
        self.server = await self.startKubeAPI("--controllers=", "--enable-aggregator-routing")
        self.config.outgoing.address_overrides[("10.1.2.3", 8443)] = ("127.0.0.1", self.backend.port)
        await self.make_service()
        await self.make_slice()
        await self.register()
        await self.until_condition("Passed")
        self.assertEqual((await self.ask("GET", THINGS))[0], 200)
        self.assertEqual(self.backend.received[-1].fields["host"], ["10.1.2.3:8443"])

    async def test_override(self) -> None:
        """An APIService of a user replaces a local group-version; its deletion restores the local one."""
        await self.begin()
        path = "/apis/batch/v1/namespaces/default/jobs"
        await self.patch_object(
            f"{SERVICES}/v1.batch",
            {"spec": {"service": {"namespace": "default", "name": "far"}, "insecureSkipTLSVerify": True}},
        )
        self.backend.answers["/apis/batch/v1"] = lambda request: {"groupVersion": "batch/v1"}

        async def theirs() -> bool:
            code, answer, _ = await self.ask("GET", path)
            return code == 200 and json.loads(answer) == {"path": path}

        await self.until(theirs)
        await self.patch_object(f"{SERVICES}/v1.batch", {"spec": {"service": None, "insecureSkipTLSVerify": None}})
        self.assertEqual((await self.done("GET", path))["kind"], "JobList")

    async def test_definition_and_service(self) -> None:
        """
        If a CRD and an APIService of a user name the same version, the aggregated server answers while the APIService
        exists.
        """
        await self.begin()
        name = f"things.{GROUP}"
        crd = {
            "metadata": {"name": name},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            },
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await self.done("POST", path, crd)

        async def established() -> bool:
            found = await self.done("GET", f"{path}/{name}")
            conditions = (found.get("status") or {}).get("conditions") or ()
            return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

        await self.until(established)
        self.assertEqual(await self.done("GET", THINGS), {"path": THINGS})
        await self.done("DELETE", f"{SERVICES}/{NAME}")

        async def local() -> bool:
            code, answer, _ = await self.ask("GET", THINGS)
            return code == 200 and json.loads(answer)["kind"] == "ThingList"

        await self.until(local)
        found = await self.until_condition("Local")
        self.assertEqual(found["status"], "True")

    async def test_authentication_config_map(self) -> None:
        """A config map publishes to aggregated servers how to authenticate this server."""
        await self.begin()
        found = await self.done("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
        data = found["data"]
        self.assertIn(self.config.credentials.front_proxy_authority.decode(), data["requestheader-client-ca-file"])
        self.assertEqual(json.loads(data["requestheader-allowed-names"]), [self.backend.probes[0].client])
        self.assertEqual(json.loads(data["requestheader-username-headers"]), ["X-Remote-User"])
        self.assertEqual(json.loads(data["requestheader-extra-headers-prefix"]), ["X-Remote-Extra-"])
