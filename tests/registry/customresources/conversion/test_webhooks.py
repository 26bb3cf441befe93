"""Tests for conversion by webhooks: L{kubetwist.registry.customresources.conversion}, over HTTP on localhost."""

from __future__ import annotations

import base64
from ipaddress import ip_network
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import GroupVersionKind
from kubetwist.client.factory import ClientFactory
from kubetwist.registry.customresources.conversion import CRConverter, CRConverterFactory
from kubetwist.testing.webhooks import HANG_UP, Call, Reply, WebhookServer
from kubetwist.tracing.spans import Span, Tracer

V2 = GroupVersionKind("example.com", "v2", "Kite")


def kite(name: str, **meta: Any) -> dict[str, Any]:
    """Return an object in version 1."""
    meta = {"name": name, "namespace": "default", "uid": f"u-{name}", **meta}
    return {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": meta, "spec": {"tail": 1}}


def honest(call: Call, **response: Any) -> dict[str, Any]:
    """Return the response of a correct webhook."""
    review = call.json()
    request = review["request"]
    converted = [{**obj, "apiVersion": request["desiredAPIVersion"], "new": True} for obj in request["objects"]]
    answer = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}, **response}
    return {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": answer}


class WebhookConversionTests(TestCase):
    """Tests for a CRD with C{strategy: Webhook}."""

    def setUp(self) -> Deferred[Any]:
        """Start a webhook."""
        self.answer: Any = honest
        self.webhook = WebhookServer(reactor, lambda call: self.answer(call))
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.outgoing.close()))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.webhook.stop()))
        return Deferred.fromCoroutine(self.webhook.start())

    def conversion(self, *versions: str, **config: Any) -> CRConverter:
        """Return the converter of the CRD."""
        client = {"url": f"{self.webhook.url}/convert", "caBundle": base64.b64encode(self.webhook.ca).decode()}
        webhook = {"clientConfig": config or client, "conversionReviewVersions": versions or ("v1",)}
        crd = {"metadata": {}, "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
        result = CRConverterFactory(self.outgoing, reactor)(crd)
        assert result is not None
        self.addCleanup(result.close)
        return result

    async def failure(self, conversion: CRConverter | None = None) -> str:
        """Return the message of a conversion that fails."""
        error = await self.assertFailure(
            Deferred.fromCoroutine((conversion or self.conversion()).convert([kite("a")], V2)), APIStatusError
        )
        self.assertEqual((error.code, error.reason), (500, ""))
        return str(error.message)

    async def test_success(self) -> None:
        """All objects of a list are converted in one call, in order."""
        objects = [kite(f"k{number}") for number in range(20)]
        result = await self.conversion().convert(objects, V2)
        self.assertEqual([obj["metadata"] for obj in result], [obj["metadata"] for obj in objects])
        self.assertTrue(all(obj["new"] and obj["apiVersion"] == "example.com/v2" for obj in result))
        (call,) = self.webhook.calls
        self.assertEqual((call.path, call.query["timeout"]), ("/convert", "30s"))
        review = call.json()
        self.assertEqual(review["apiVersion"], "apiextensions.k8s.io/v1")
        self.assertEqual(review["request"]["desiredAPIVersion"], "example.com/v2")

    async def test_traced(self) -> None:
        """The call of a traced request has a span, whose context the webhook receives."""
        self.outgoing.traced = True
        spans: list[Span] = []
        request = Tracer(1_000_000, spans.append).start_trace(None, False, b"", 1.0)
        with request:
            await self.conversion().convert([kite("a"), kite("b")], V2)
        sent, call, _ = spans
        uid = self.webhook.calls[0].json()["request"]["uid"]
        self.assertEqual(call.name, "Call conversion webhook")
        self.assertEqual(call.attributes, {"desired-api-version": "example.com/v2", "object-count": 2, "UID": uid})
        self.assertEqual((sent.name, sent.parent_id), ("HTTP POST", call.span_id))
        traceparent = self.webhook.calls[0].headers["traceparent"]
        self.assertEqual(traceparent, dict(sent.propagation_headers())[b"traceparent"].decode())

    async def test_batches(self) -> None:
        """A long list is converted in several calls, by number and by size."""
        conversion = self.conversion()
        await conversion.convert([kite(f"k{number}") for number in range(1001)], V2)
        self.assertEqual([len(call.json()["request"]["objects"]) for call in self.webhook.calls], [500, 500, 1])
        self.webhook.calls.clear()
        large = [{**kite(f"k{number}"), "text": "x" * 1_500_000} for number in range(5)]
        await conversion.convert(large, V2)
        self.assertEqual([len(call.json()["request"]["objects"]) for call in self.webhook.calls], [2, 2, 1])

    async def test_review_versions(self) -> None:
        """The first review version that both support is used."""
        await self.conversion("v7", "v1beta1", "v1").convert([kite("a")], V2)
        self.assertEqual(self.webhook.calls[0].json()["apiVersion"], "apiextensions.k8s.io/v1beta1")
        self.assertEqual(
            await self.failure(self.conversion("v7")),
            "conversion webhook for example.com/v1, Kind=Kite failed: no supported conversion review versions",
        )

    async def test_refusal(self) -> None:
        """The webhook's reason is shown."""
        self.answer = lambda call: honest(call, result={"status": "Failure", "message": "no kites today"})
        message = await self.failure()
        self.assertEqual(message, "conversion webhook for example.com/v1, Kind=Kite failed: no kites today")
        self.answer = lambda call: honest(call, result={})
        self.assertIn("response.result.status was '', not 'Success'", await self.failure())

    async def test_response_to_another_request(self) -> None:
        """A response with another uid or kind, or without a response, is rejected."""
        self.answer = lambda call: honest(call, uid="other")
        self.assertIn('failed: expected response.uid="', await self.failure())
        self.answer = lambda call: {**honest(call), "kind": "AdmissionReview"}
        self.assertIn(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got "
            "apiextensions.k8s.io/v1, Kind=AdmissionReview",
            await self.failure(),
        )
        self.answer = lambda call: {**honest(call), "response": None}
        self.assertIn("no response provided", await self.failure())

    async def test_garbage(self) -> None:
        """Invalid JSON, an HTTP error or a lost connection is reported clearly."""
        self.answer = lambda call: Reply(200, b"<html>", {"Content-Type": "application/json"})
        self.assertIn("couldn't get version/kind; json parse error", await self.failure())
        self.answer = lambda call: Reply(500, b"oops")
        self.assertIn('an error on the server ("oops") has prevented the request from succeeding', await self.failure())
        self.answer = lambda call: HANG_UP
        self.assertIn(f'Post "{self.webhook.url}/convert?timeout=30s": ', await self.failure())
        self.answer = lambda call: honest(call, convertedObjects=[1])
        self.assertIn("returned invalid object at index 0", await self.failure())

    async def test_redirect_is_not_followed(self) -> None:
        """Redirects of a webhook are not followed (CVE-2020-8561)."""
        self.answer = lambda call: Reply(302, b"", {"Location": f"{self.webhook.url}/secret"})
        self.assertIn("which is not followed", await self.failure())
        self.assertEqual([call.path for call in self.webhook.calls], ["/convert"])

    async def test_denied_url(self) -> None:
        """A URL that the operator denies is not requested."""
        self.outgoing.denied_networks = (ip_network("127.0.0.0/8"),)
        self.assertIn("address not allowed", await self.failure())
        self.assertEqual(self.webhook.calls, [])

    async def test_missing_service(self) -> None:
        """A missing service is reported as in the reference."""
        conversion = self.conversion(service={"name": "absent", "namespace": "ns", "path": "/convert"})
        self.assertEqual(
            await self.failure(conversion),
            "conversion webhook for example.com/v1, Kind=Kite failed: Post "
            '"https://absent.ns.svc:443/convert?timeout=30s": service "absent" not found',
        )
