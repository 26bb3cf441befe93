"""Klein apps for tests of the chain, and a client that needs no filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klein import Klein
from twisted.web.http_headers import Headers
from twisted.web.resource import IResource

from kubetwist.http.request import KubeRequest
from kubetwist.http.site import traverse
from kubetwist.resources.routing import RoutedApp, add_route, new_app
from tests.http.harness import Client, make_site


def app_of(handle: Callable[[KubeRequest], Any]) -> RoutedApp:
    """Return an app that answers any method of any path."""

    def answer(request: KubeRequest, path: str) -> object:
        return handle(request)

    def make() -> Klein:
        app = new_app()
        add_route(app, None, "/<rest:path>", answer)
        return app

    return RoutedApp(make)


def text_app(text: bytes) -> RoutedApp:
    """Return an app that answers with a text."""
    return app_of(lambda request: text)


def ask(root: IResource, method: str, path: str, **headers: str) -> tuple[int, Headers, bytes]:
    """Send a request to a chain of servers without filters; return the code, the headers and the body."""
    answer = Client(make_site(traverse(root))).request(method, path, **headers)
    return answer.code, Headers({name: list(values) for name, values in answer.headers.items()}), answer.body
