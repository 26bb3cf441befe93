"""Tests of L{kubetwist.server.chain}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.http.site import traverse
from kubetwist.server.chain import create_server_chain
from tests.http.harness import Client, make_site
from tests.resources.apps import text_app


class ChainTests(SynchronousTestCase):
    """L{create_server_chain}."""

    def test_delegation(self) -> None:
        """A path is answered by the first server that has it; an unknown path is not found."""
        config: Any = SimpleNamespace(options={}, reactor=None, traced=False, features=FeatureGates())

        def install(given: Any, aggregator: Any, kube: Any, extensions: Any) -> None:
            self.assertIs(given, config)
            aggregator.mux.handle_prefix("/apis/a", text_app(b"aggregator"))
            kube.mux.handle_prefix("/apis/b", text_app(b"kube"))
            extensions.mux.handle_prefix("/apis/b", text_app(b"never"))
            extensions.mux.handle_prefix("/apis/c", text_app(b"extensions"))

        front = create_server_chain(config, install).front
        self.assertEqual(
            [one.name for one in front.chain()], ["apiextensions-apiserver", "kube-apiserver", "kube-aggregator"]
        )
        client = Client(make_site(traverse(front.mux)))
        for path, body in (("a", b"aggregator"), ("b/v1/x", b"kube"), ("c", b"extensions")):
            self.assertEqual(client.request("GET", f"/apis/{path}").body, body)
        for path in ("/apis/d", "/apis", "/", "//apis/a"):
            answer = client.request("POST", path)
            self.assertEqual((answer.code, answer.body), (404, b"404 page not found\n"))
            self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
            self.assertEqual(answer.header("x-content-type-options"), "nosniff")
