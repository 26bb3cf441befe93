"""Connections in memory to a site, with or without filters."""

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
from kubetwist.api.featuregates import FeatureGates
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
    """A parsed response."""

    code: int
    headers: dict[str, list[str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        values = self.headers.get(name.lower())
        return values[0] if values else None


def parse_answers(data: bytes, bodiless: bool = False) -> list[Answer]:
    """Parse all responses in C{data}, which must be complete."""
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
    """A connection in memory to a site."""

    def __init__(self, site: KubeSite) -> None:
        self.site = site
        self.transport = StringTransport()
        self.channel = site.buildProtocol(None)
        self.channel.makeConnection(self.transport)

    def send(self, data: bytes) -> None:
        """Send data, and run the pending calls of the reactor."""
        self.channel.dataReceived(data)
        self.site.reactor.advance(0)

    def answers(self, bodiless: bool = False) -> list[Answer]:
        """Return the responses since the last call."""
        data = self.transport.value()
        self.transport.clear()
        return parse_answers(data, bodiless)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request and return its response; underscores in header names stand for dashes."""
        fields = {"Host": "x", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body:
            fields["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        (answer,) = self.answers(method == "HEAD")
        return answer


class RefusalCase(SynchronousTestCase):
    """Base of tests with refused requests."""

    def refused(self, data: bytes) -> int:
        """Send C{data}, assert that it is refused and the connection closed, and return the status code."""
        client = Client(make_site())
        client.send(data)
        (answer,) = client.answers()
        self.assertTrue(client.transport.disconnecting)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        client.send(GET)
        self.assertEqual(client.answers(), [])
        return answer.code


class Leaf(Resource):
    """A leaf resource that calls C{handle}."""

    isLeaf = True

    def __init__(self, handle: Callable[[KubeRequest], Any]) -> None:
        super().__init__()
        self._handle = handle

    def render(self, request: Any) -> Any:
        """Call the handler."""
        self._handle(request)
        return NOT_DONE_YET


def echo(request: KubeRequest) -> None:
    """Answer with the method, the path and the body."""
    body = request.read_body()
    request.respond(200, b"%b %b %b" % (request.method, request.path, body), b"text/plain")


def make_site(handler: Handler = echo, clock: Clock | None = None) -> KubeSite:
    """Return a started site without filters."""
    site = KubeSite(handler, clock or Clock())
    site.startFactory()
    return site


class Everyone:
    """An authenticator that returns the same user for all requests."""

    def __init__(self, user: UserInfo | None = None) -> None:
        self.user = user or UserInfo("admin", groups=("system:authenticated",))

    def authenticate(self, request: Any) -> Any:
        """Return the user."""
        return self.user


class Allow:
    """
    An authorizer that denies some verbs, and records the attributes.

    @ivar refused: The denied verbs.
    """

    name = "Allow"

    def __init__(self) -> None:
        self.asked: list[AuthorizerAttributes] = []
        self.refused: set[str] = set()

    def authorize(self, attributes: AuthorizerAttributes) -> Any:
        """Record the attributes, and decide by the verb."""
        self.asked.append(attributes)
        return REFUSED if attributes.verb in self.refused else ALLOWED


def filtered_site(
    handle: Callable[[KubeRequest], Any] = echo,
    *,
    authenticator: Any = None,
    authorizer: Any = None,
    clock: Clock | None = None,
    request_timeout: float = 60.0,
    features: FeatureGates | None = None,
) -> KubeSite:
    """Return a site with all filters in front of one handler."""
    clock = clock or Clock()
    handler = build_handler_chain(
        traverse(Leaf(handle)),
        reactor=clock,
        authenticator=authenticator or Everyone(),
        authorizer=authorizer or Allow(),
        request_timeout=request_timeout,
        features=features or FeatureGates(),
    )
    site = make_site(handler, clock)
    site.heads_first = True
    return site
