"""A site over connections in memory, and a certificate authority, for the tests of what is in front of the APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.request import Handler, KubeRequest
from kubetwist.http.site import KubeSite, traverse

#: A request without a body.
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

ALLOWED = Verdict(Decision.ALLOW)
REFUSED = Verdict(Decision.NO_OPINION, "nobody says so")


@frozen
class Answer:
    """One answer, taken apart."""

    code: int
    headers: dict[str, list[str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        values = self.headers.get(name.lower())
        return values[0] if values else None


def parse_answers(data: bytes, bodiless: bool = False) -> list[Answer]:
    """All answers that stand in C{data}, which must be whole ones."""
    found = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        assert separator, f"no end of a head in {head!r}"
        status, *lines = head.decode("latin-1").split("\r\n")
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers.setdefault(name.lower(), []).append(value)
        code = int(status.split(" ")[1])
        body = b""
        if code == 100:
            continue
        if "transfer-encoding" in headers:
            while True:
                size, _, data = data.partition(b"\r\n")
                piece, data = data[: int(size, 16)], data[int(size, 16) + 2 :]
                body += piece
                if not piece:
                    break
        elif not bodiless:
            length = int(headers.get("content-length", ["0"])[0])
            body, data = data[:length], data[length:]
        found.append(Answer(code, headers, body))
    return found


class Client:
    """One connection to a site, in memory."""

    def __init__(self, site: KubeSite) -> None:
        self.site = site
        self.transport = StringTransport()
        self.channel = site.buildProtocol(None)
        self.channel.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        """Deliver bytes, and run all turns of the reactor."""
        self.channel.dataReceived(data)
        self.site.reactor.advance(0)

    def answers(self, bodiless: bool = False) -> list[Answer]:
        """What was answered since the last call."""
        data = self.transport.value()
        self.transport.clear()
        return parse_answers(data, bodiless)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send one request and expect its answer; underscores in names of headers stand for dashes."""
        fields = {"Host": "x", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body:
            fields["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        (answer,) = self.answers(method == "HEAD")
        return answer


class RefusalCase(SynchronousTestCase):
    """A case that expects refusals."""

    def refused(self, data: bytes) -> int:
        """Send C{data} and return the code of its refusal; expect the end of the connection."""
        client = Client(make_site())
        client.send(data)
        (answer,) = client.answers()
        self.assertTrue(client.transport.disconnecting)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        client.send(GET)
        self.assertEqual(client.answers(), [])
        return answer.code


class Leaf(Resource):
    """Answers everything by calling C{handle}."""

    isLeaf = True

    def __init__(self, handle: Callable[[KubeRequest], Any]) -> None:
        super().__init__()
        self._handle = handle

    def render(self, request: Any) -> Any:
        """Let it answer."""
        self._handle(request)
        return NOT_DONE_YET


def echo(request: KubeRequest) -> None:
    """Answer with the method, the path and the body."""
    body = request.read_body()
    request.respond(200, b"%b %b %b" % (request.method, request.path, body), b"text/plain")


def make_site(handler: Handler = echo, clock: Clock | None = None) -> KubeSite:
    """A site without filters, whose clock runs."""
    site = KubeSite(handler, clock or Clock())
    site.startFactory()
    return site


class Everyone:
    """Takes every request for one user's."""

    def __init__(self, user: UserInfo | None = None) -> None:
        self.user = user or UserInfo("admin", groups=("system:authenticated",))

    def authenticate(self, request: Any) -> Any:
        """That user."""
        return self.user


class Allow:
    """
    Allows everything but some verbs, and keeps what it was asked.

    @ivar refused: Those.
    """

    name = "Allow"

    def __init__(self) -> None:
        self.asked: list[AuthorizerAttributes] = []
        self.refused: set[str] = set()

    def authorize(self, attributes: AuthorizerAttributes) -> Any:
        """Yes."""
        self.asked.append(attributes)
        return REFUSED if attributes.verb in self.refused else ALLOWED


def filtered_site(
    handle: Callable[[KubeRequest], Any] = echo,
    *,
    authenticator: Any = None,
    authorizer: Any = None,
    clock: Clock | None = None,
    request_timeout: float = 60.0,
) -> KubeSite:
    """A site with all filters in front of one leaf."""
    clock = clock or Clock()
    handler = build_handler_chain(
        traverse(Leaf(handle)),
        reactor=clock,
        authenticator=authenticator or Everyone(),
        authorizer=authorizer or Allow(),
        request_timeout=request_timeout,
    )
    site = make_site(handler, clock)
    site.heads_first = True
    return site
