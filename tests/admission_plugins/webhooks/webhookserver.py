"""A server with the webhook plugins, and scripted webhooks."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.webhooks.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook
from kubetwist.api.featuregates import FeatureGates
from kubetwist.client.httpclient import Response
from kubetwist.client.services import Services
from tests.resources.server import Server, configured, definitions


class ClientFactory:
    """
    A client factory with scripted webhooks.

    @ivar answer: Returns the response for a URL and a review: the response of the review, an L{Response}, an exception
        to raise, or an awaitable.
    @ivar calls: The URLs and reviews, in order.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str, dict[str, Any]], Any] = lambda url, review: {"allowed": True}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.settings: list[Any] = []
        self.timeouts: list[float] = []
        self.services = Services(lambda namespace, name: None)
        self.denied_networks = ()

    def client(self, settings: Any) -> Client:
        """Return a client of a webhook."""
        self.settings.append(settings)
        return Client(self, settings.url)


class Client:
    """A client of a webhook."""

    def __init__(self, outgoing: ClientFactory, url: str) -> None:
        self._outgoing = outgoing
        self._url = url

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """Record the call and respond."""
        self._outgoing.timeouts.append(timeout)
        review = orjson.loads(body)
        self._outgoing.calls.append((self._url, review))
        scripted = self._outgoing.answer(self._url, review)
        if isinstance(scripted, BaseException):
            raise scripted
        if not isinstance(scripted, dict | Response):
            scripted = await scripted
        if isinstance(scripted, Response):
            return scripted
        answer = {
            "kind": "AdmissionReview",
            "apiVersion": review["apiVersion"],
            "response": {"uid": review["request"]["uid"], **scripted},
        }
        return Response(200, {"content-type": "application/json"}, orjson.dumps(answer))


def patch(*operations: tuple[str, str, Any]) -> dict[str, Any]:
    """Return a response with a JSON patch."""
    encoded = orjson.dumps([{"op": op, "path": path, "value": value} for op, path, value in operations])
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(encoded).decode()}


def webhook(name: str = "a.example.org", **fields: Any) -> dict[str, Any]:
    """Return a webhook, by default for the creation of all objects."""
    rule = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    return {
        "name": name,
        "clientConfig": {"url": f"https://hooks.example.org/{name}"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


class WebhookTestCase(SynchronousTestCase):
    """A test case of webhooks over HTTP in memory."""

    resources: tuple[str, ...] = (
        "configmaps",
        "pods",
        "namespaces",
        "deployments",
        "events",
        "horizontalpodautoscalers",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "serviceaccounts",
        "subjectaccessreviews",
    )
    features = FeatureGates()

    def setUp(self) -> None:
        """Create a server with both plugins."""
        self.outgoing = ClientFactory()
        self.server = Server(
            *self.resources,
            admission=configured(MutatingAdmissionWebhook, ValidatingAdmissionWebhook),
            outgoing=self.outgoing,
            types=definitions(),
            features=self.features,
        )
        self.client = self.server.client()
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "default", "labels": {"team": "a"}}})

    def send_request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the body of a successful response."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer

    def request_error(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        """Return the code and message of an error."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertGreaterEqual(code, 400, answer)
        return code, answer["message"]

    def configure(self, *webhooks: dict[str, Any], mutating: bool = False, name: str = "hooks") -> None:
        """Create a configuration of webhooks."""
        resource = "mutatingwebhookconfigurations" if mutating else "validatingwebhookconfigurations"
        body = {"metadata": {"name": name}, "webhooks": list(webhooks)}
        self.send_request("POST", f"/apis/admissionregistration.k8s.io/v1/{resource}", body)

    def config_map(self, name: str = "m", **fields: Any) -> Any:
        """Create a ConfigMap."""
        return self.send_request(
            "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name, **fields}}
        )

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the requests of the reviews, in order."""
        return [review["request"] for _, review in self.outgoing.calls]
