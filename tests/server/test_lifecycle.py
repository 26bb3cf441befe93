"""Tests of L{kubetwist.server.lifecycle}: a whole server on a free port, with a test API."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from kubetwist.http.request import KubeRequest
from kubetwist.resources.apis import install_apis
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair
from kubetwist.server.errors import StartError
from kubetwist.server.hooknames import AUTOREGISTRATION, ORDER, check_name
from tests.http.harness import parse_answers
from tests.server.servercase import ServerCase, is_whole, reactor

#: The hooks of the reference that have no counterpart; see L{kubetwist.server.hooknames}.
WITHOUT_COUNTERPART = {
    "start-apiserver-admission-initializer",
    "storage-object-count-tracker-hook",
    "peer-endpoint-reconciler-controller",
}


class StartTests(ServerCase):
    """Start, authentication and authorization."""

    async def test_ready(self) -> None:
        """A started server is ready and has run its hooks in order."""
        await self.start()
        self.assertEqual(self.calls, ["cache", "hook"])
        answer = await self.ask("/readyz?verbose")
        self.assertEqual(answer.code, 200)
        self.assertIn(b"[+]poststarthook/mine ok\n", answer.body)
        self.assertTrue(answer.body.endswith(b"[+]shutdown ok\nreadyz check passed\n"))
        self.assertEqual((await self.ask("/livez")).body, b"ok")
        self.assertEqual((await self.ask("/healthz/etcd")).code, 403)

    async def test_true_lines(self) -> None:
        """Each line C{ok} of a hook fails when the hook behind it does; three hooks have no counterpart here."""
        self.install = install_apis  # type: ignore[method-assign]
        server = await self.start("--authorization-mode=AlwaysAllow")
        connection = await self.connect(self.admin)

        async def names(start: str, end: str) -> set[str]:
            lines = (await self.ask_on(connection, "/readyz?verbose")).body.decode().splitlines()
            return {line[len(start) : -len(end)] for line in lines if line.startswith(start) and line.endswith(end)}

        self.assertEqual(await names("[+]poststarthook/", " not applicable"), WITHOUT_COUNTERPART)
        passing = await names("[+]poststarthook/", " ok")
        self.assertEqual(set(ORDER) - WITHOUT_COUNTERPART - {AUTOREGISTRATION}, passing & set(ORDER))
        seen = set()
        for hook in server.front.start_hooks():
            hook.problem = "no luck"
            failing = await names("[-]", " failed: reason withheld")
            self.assertEqual(failing, {check_name(name) for name in (hook.name, *hook.covers)})
            seen |= failing
            hook.problem = None
        self.assertEqual(seen, {check_name(name) for name in (*passing, AUTOREGISTRATION)})

    async def test_hanging_hook(self) -> None:
        """While a post-start hook hangs, the server answers, and is not ready because of that hook."""
        install, waits = self.install, Deferred[None]()

        def hanging(*arguments: Any) -> None:
            install(*arguments)
            arguments[1].add_post_start_hook("slow", lambda: waits)

        self.install = hanging  # type: ignore[method-assign]
        self.service = service = self.make("--livez-grace-period=1h")
        self.addCleanup(service.stopService)
        self.addCleanup(lambda: waits.called or waits.callback(None))
        service.startService()
        while service.server is None or not service.server.url:
            await deferLater(reactor, 0.01)
        answer = await self.ask("/readyz")
        failing = [line for line in answer.body.splitlines() if line.startswith(b"[-]")]
        self.assertEqual((answer.code, failing), (500, [b"[-]poststarthook/slow failed: reason withheld"]))
        self.assertEqual((await self.ask("/livez")).body, b"ok")
        waits.callback(None)
        await service.ready
        self.assertEqual((await self.ask("/readyz")).body, b"ok")

    async def test_not_found(self) -> None:
        """An unknown path is answered with 404."""
        await self.start("--authorization-mode=AlwaysAllow")
        answer = await self.ask("/nowhere", self.admin)
        self.assertEqual((answer.code, answer.body), (404, b"404 page not found\n"))

    async def test_certificates(self) -> None:
        """A client certificate authenticates its user, once per connection."""
        await self.start()
        admin = CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())
        connection = await self.connect(admin)
        for _ in range(2):
            answer = await self.ask_on(connection, "/api/v1/x/y")
            self.assertEqual(answer.body, b"kubernetes-admin system:masters,system:authenticated")

    async def test_other_certificates(self) -> None:
        """Foreign certificates and server certificates are answered with 401, unless a valid token is sent."""
        tokens = self.folder / "tokens.csv"
        tokens.write_text("secret,alice,u\n")
        await self.start(f"--token-auth-file={tokens}")
        foreign = CertificateAuthority.make("kubetwist-ca").issue(CertConfig("eve", organization="system:masters"))
        ours = CertificateAuthority(CertKeyPair((self.pki / "ca.crt").read_bytes(), (self.pki / "ca.key").read_bytes()))
        server = ours.issue(CertConfig("eve", organization="system:masters", server=True))
        for pair in (foreign, server):
            self.assertEqual((await self.ask("/api/v1/x/y", pair)).code, 401)
            answer = await self.ask("/api/v1/x/y", pair, Authorization="Bearer secret")
            self.assertEqual(answer.body, b"alice system:authenticated")

    async def test_client_ca_file(self) -> None:
        """Certificates of --client-ca-file are accepted in addition to the server's."""
        authority = CertificateAuthority.make("another")
        path = self.folder / "clients.crt"
        path.write_bytes(authority.pair.certificate)
        await self.start(f"--client-ca-file={path}")
        answer = await self.ask("/api/v1/x/y", authority.issue(CertConfig("carol", organization="team")))
        self.assertEqual(answer.body, b"carol team,system:authenticated")
        admin = CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())
        self.assertEqual((await self.ask("/api/v1/x/y", admin)).code, 200)

    async def test_front_proxy(self) -> None:
        """CVE-2019-16276: identity headers are accepted only from an allowed proxy, and hidden from handlers."""
        proxies = CertificateAuthority.make("proxies")
        path = self.folder / "proxies.crt"
        path.write_bytes(proxies.pair.certificate)
        await self.start(
            f"--requestheader-client-ca-file={path}",
            "--requestheader-allowed-names=front",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
        )
        headers = {"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X_Remote_Extra_K": "v"}
        self.seen = {}
        answer = await self.ask("/readyz", **headers)
        self.assertEqual(answer.code, 200)
        answer = await self.ask("/api/v1/x/y", **headers)
        self.assertIn(b'User \\"system:anonymous\\" cannot', answer.body)
        front = proxies.issue(CertConfig("front"))
        answer = await self.ask("/api/v1/x/y", front, **{"X-Remote-User": "root", "X-Remote-Group": "wheel"})
        self.assertEqual(answer.body, b"root wheel,system:authenticated")
        self.assertEqual([name for name in self.seen if b"remote" in name], [])
        for pair in (front, proxies.issue(CertConfig("other"))):
            self.assertEqual((await self.ask("/api/v1/x/y", pair)).code, 401)
        answer = await self.ask("/api/v1/x/y", front, **{"X-Remote-User": "root", "X_Remote_Group": "system:masters"})
        self.assertEqual(answer.code, 401)
        admin = CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())
        answer = await self.ask("/api/v1/x/y", admin, **headers)
        self.assertEqual(answer.body, b"kubernetes-admin system:masters,system:authenticated")
        self.assertEqual([name for name in self.seen if b"remote" in name.lower()], [])

    async def test_anonymous(self) -> None:
        """Anonymous clients may read health checks only; an invalid token is answered with 401."""
        await self.start()
        self.assertEqual((await self.ask("/readyz")).code, 200)
        self.assertEqual((await self.ask("/api/v1/x/y")).code, 403)
        self.assertEqual((await self.ask("/readyz", Authorization="Bearer nope")).code, 401)

    async def test_no_anonymous(self) -> None:
        """With --anonymous-auth=false requests without credentials are answered with 401, with any authorizer."""
        await self.start("--anonymous-auth=false")
        self.assertEqual((await self.ask("/readyz")).code, 401)
        await self.service.stopService()
        await self.start("--authorization-mode=AlwaysAllow")
        self.assertEqual((await self.ask("/readyz")).code, 401)

    async def test_always_deny(self) -> None:
        """AlwaysDeny denies all requests except for system:masters."""
        await self.start("--authorization-mode=AlwaysDeny")
        answer = await self.ask("/readyz")
        self.assertIn(b'cannot get path \\"/readyz\\": Everything is forbidden.', answer.body)
        admin = CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())
        self.assertEqual((await self.ask("/api/v1/x/y", admin)).code, 200)

    async def test_start_errors(self) -> None:
        """A failing start has a one-line error."""
        bad = self.folder / "bad"
        bad.write_text("garbage")
        for flag, message in (
            (f"--data-dir={self.folder}", "is not a data directory of kubetwist"),
            (f"--token-auth-file={bad}", "must have at least 3 columns"),
            (f"--client-ca-file={bad}", "cannot use the client CA file"),
            ("--storage-backend=paper", "--storage-backend must be one of etcd3, memory, sqlite"),
            ("--authorization-mode=Nobody", "is not a valid mode"),
            ("--authorization-mode=AlwaysAllow,AlwaysAllow", "has mode specified more than once"),
            ("--bind-address=192.0.2.1", "cannot listen on 192.0.2.1 port 0"),
        ):
            self.assertIn(message, await self.refused(flag))

    async def test_missing_files(self) -> None:
        """The error for a missing file contains its path."""
        missing_file = f"{self.folder}/gone"
        lost = f"cannot read {missing_file}: No such file or directory"
        oidc = ("--oidc-issuer-url=https://issuer.invalid", "--oidc-client-id=us")
        for message, *flags in (
            (
                f"cannot read the token file {missing_file}: No such file or directory",
                f"--token-auth-file={missing_file}",
            ),
            (lost, f"--client-ca-file={missing_file}"),
            (lost, f"--requestheader-client-ca-file={missing_file}"),
            (
                f"cannot read --oidc-ca-file {missing_file}: No such file or directory",
                f"--oidc-ca-file={missing_file}",
                *oidc,
            ),
        ):
            self.assertEqual(await self.refused(*flags), message)

    async def test_port_in_use(self) -> None:
        """A port in use is reported; the other server is not affected."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            self.assertIn(f"cannot listen on 127.0.0.1 port {port}: ", await self.refused(f"--secure-port={port}"))
        await self.start()

    async def test_failing_hook(self) -> None:
        """A failing post-start hook fails the start, and everything is stopped."""
        install = self.install

        def failing(*arguments: Any) -> None:
            install(*arguments)

            def fails() -> None:
                raise StartError("no luck")

            arguments[1].add_post_start_hook("bad", fails)

        self.install = failing  # type: ignore[method-assign]
        self.assertEqual(await self.refused(), "no luck")
        self.assertEqual(self.calls, ["cache", "hook", "end"])

    async def test_runtime_config(self) -> None:
        """An unknown group version of --runtime-config fails the start with a one-line error."""
        self.install = install_apis  # type: ignore[method-assign]
        for given, words in (
            ("apps/v9=true", "group version apps/v9 that has not been registered"),
            ("api/beta=maybe", "invalid value api/beta=maybe"),
        ):
            self.assertEqual(await self.refused(f"--runtime-config={given}"), f"--runtime-config: {words}")

    async def test_second_start(self) -> None:
        """A second server on the same data has the same certificates."""
        await self.start()
        admin = CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())
        await self.service.stopService()
        await self.start()
        self.assertEqual((await self.ask("/api/v1/x/y", admin)).code, 200)


class StopTests(ServerCase):
    """Graceful stop."""

    async def test_order(self) -> None:
        """Stopping runs the hooks; stopping again has no effect."""
        server = await self.start()
        await self.service.stopService()
        await self.service.stopService()
        self.assertEqual(self.calls, ["cache", "hook", "pre-shutdown", "end"])
        self.assertTrue(server.stopping)

    async def test_delay(self) -> None:
        """During the shutdown delay the server answers, and /readyz fails."""
        await self.start("--shutdown-delay-duration=300ms", "--authorization-mode=AlwaysAllow")
        connection = await self.connect(self.admin)
        stopped = self.service.stopService()
        answer = await self.ask_on(connection, "/readyz")
        self.assertEqual(answer.code, 500)
        self.assertIn(b"[-]shutdown failed: reason withheld\n", answer.body)
        self.assertEqual((await self.ask("/livez", self.admin)).code, 200)
        await stopped

    async def test_requests_and_watches(self) -> None:
        """Open requests are answered, watches end, and no connections are accepted."""
        await self.start("--authorization-mode=AlwaysAllow")
        watch, waiting, idle = [await self.connect(self.admin) for _ in range(3)]
        watch.transport.write(b"GET /api/v1/x/watch HTTP/1.1\r\nHost: x\r\n\r\n")
        await watch.until(lambda data: b"event\n" in data)
        waiting.transport.write(b"GET /api/v1/x/wait HTTP/1.1\r\nHost: x\r\n\r\n")
        while not self.waiting:
            await deferLater(reactor, 0.01)
        url = self.service.server.url
        stopped = self.service.stopService()
        (ended,) = parse_answers(await watch.until(lambda data: data.endswith(b"0\r\n\r\n")))
        self.assertEqual(ended.body, b"event\nend\n")
        await idle.ended
        with socket.socket() as late:
            self.assertNotEqual(late.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))), 0)
        self.assertNoResult(stopped)
        self.waiting[0].respond(200, b"done", b"text/plain")
        (answer,) = parse_answers(await waiting.until(is_whole))
        self.assertEqual((answer.body, answer.header("connection")), (b"done", "close"))
        await stopped
        self.assertEqual(self.calls[-1], "end")

    async def test_never_answered(self) -> None:
        """A request that is not answered delays the stop only up to the request timeout."""
        await self.start("--authorization-mode=AlwaysAllow", "--request-timeout=200ms")
        connection = await self.connect(self.admin)
        connection.transport.write(b"GET /api/v1/x/wait HTTP/1.1\r\nHost: x\r\n\r\n")
        while not self.waiting:
            await deferLater(reactor, 0.01)
        await self.service.stopService()
        await connection.ended

    async def test_large_response(self) -> None:
        """A response that is being sent is completed."""
        size = 8 << 20

        def handle(request: KubeRequest) -> None:
            request.respond(200, b"x" * size, b"text/plain")

        self.handle = handle  # type: ignore[method-assign]
        await self.start("--authorization-mode=AlwaysAllow")
        connection = await self.connect(self.admin)
        connection.transport.write(b"GET /api/v1/x HTTP/1.1\r\nHost: x\r\n\r\n")
        await connection.until(bool)
        await self.service.stopService()
        await connection.ended
        self.assertEqual(len(connection.received.partition(b"\r\n\r\n")[2]), size)
