"""Tests for L{kubetwist.admission_plugins.webhooks.validating}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.featuregates import FeatureGates
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, patch, webhook
from tests.admission_plugins.webhooks.webhooktools import MAPS, rule
from tests.resources.server import config_map, pod


class ValidatingTests(WebhookTestCase):
    """Tests for L{kubetwist.admission_plugins.webhooks.validating}."""

    def test_request(self) -> None:
        """The review has the request, the user and the object as it will be stored."""
        self.configure(webhook())
        self.send_request("POST", f"{MAPS}?fieldManager=me&fieldValidation=Strict", config_map("m", a="b"))
        (request,) = self.requests
        self.assertEqual(
            {name: value for name, value in request.items() if name not in ("uid", "object")},
            {
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
                "name": "m",
                "namespace": "default",
                "operation": "CREATE",
                "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
                "oldObject": None,
                "dryRun": False,
                "options": {
                    "kind": "CreateOptions",
                    "apiVersion": "meta.k8s.io/v1",
                    "fieldManager": "me",
                    "fieldValidation": "Strict",
                },
            },
        )
        obj = request["object"]
        self.assertEqual((obj["kind"], obj["apiVersion"], obj["data"]), ("ConfigMap", "v1", {"a": "b"}))
        self.assertIn("uid", obj["metadata"])
        self.assertEqual(self.outgoing.calls[0][0], "https://hooks.example.org/a.example.org")

    def test_denial(self) -> None:
        """A denied object is not stored; the error has the code, reason and message of the webhook."""
        self.configure(webhook())
        review: dict[str, Any] = {"code": 409, "reason": "Conflict", "message": "not today"}
        for status, expected in (
            (review, (409, 'admission webhook "a.example.org" denied the request: not today')),
            ({"reason": "Because"}, (400, 'admission webhook "a.example.org" denied the request: Because')),
            (None, (400, 'admission webhook "a.example.org" denied the request without explanation')),
            ({"code": 200, "message": "x"}, (400, 'admission webhook "a.example.org" denied the request: x')),
        ):
            response = {"allowed": False, "status": status}
            self.outgoing.answer = lambda url, review, response=response: response
            self.assertEqual(self.request_error("POST", MAPS, config_map("m")), expected)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/m")[0], 404)

    def test_timeout(self) -> None:
        """The timeout of a call is limited by the deadline of the request."""
        self.configure(webhook(timeoutSeconds=20))
        self.config_map("one")
        self.send_request("POST", f"{MAPS}?timeout=4s", config_map("two"))
        self.assertEqual(self.outgoing.timeouts, [20, 4])

    def test_details(self) -> None:
        """The error has the details of the webhook's status and Retry-After."""
        self.configure(webhook())
        status = {"code": 429, "reason": "TooManyRequests", "message": "wait", "details": {"retryAfterSeconds": 7}}
        self.outgoing.answer = lambda url, review: {"allowed": False, "status": status}
        answered = self.client.answer("POST", MAPS, config_map("m"))
        self.assertEqual(answered.code, 429)
        self.assertIn("retry-after", str(answered.headers).lower())

    def test_collections(self) -> None:
        """A webhook is called for each object of a deletecollection, with the old object and without a name."""
        self.configure(webhook(**rule("configmaps", operations=("DELETE",))))
        self.config_map("one")
        self.config_map("two")
        self.send_request("DELETE", MAPS)
        self.assertEqual(sorted(one["oldObject"]["metadata"]["name"] for one in self.requests), ["one", "two"])
        self.assertFalse(any("name" in request for request in self.requests))

    def test_apply(self) -> None:
        """An apply that creates an object is a CREATE, and later an UPDATE."""
        self.configure(webhook(**rule("configmaps")))
        for _ in range(2):
            body = config_map("m", a=str(len(self.requests)))
            self.send_request("PATCH", f"{MAPS}/m?fieldManager=f", body, Content_Type="application/apply-patch+yaml")
        self.assertEqual([request["operation"] for request in self.requests], ["CREATE", "UPDATE"])
        self.assertEqual([request["options"]["kind"] for request in self.requests], ["CreateOptions", "UpdateOptions"])

    def test_subresources(self) -> None:
        """A rule matches the subresources that it lists; C{*} alone matches none."""
        self.configure(webhook("main.example.org", **rule("*")), webhook("all.example.org", **rule("*/*")))
        self.send_request("POST", "/api/v1/namespaces/default/pods", pod("p"))
        self.send_request(
            "POST", "/api/v1/namespaces/default/pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}
        )
        self.send_request(
            "PATCH",
            "/api/v1/namespaces/default/pods/p/status",
            {"status": {"phase": "Running"}},
            Content_Type="application/merge-patch+json",
        )
        reviewed = [
            (url.rpartition("/")[2], review["request"].get("subResource", ""), review["request"]["kind"]["kind"])
            for url, review in self.outgoing.calls
        ]
        self.assertEqual(
            reviewed,
            [
                ("main.example.org", "", "Pod"),
                ("all.example.org", "", "Pod"),
                ("all.example.org", "binding", "Binding"),
                ("all.example.org", "status", "Pod"),
            ],
        )
        binding = self.requests[2]
        self.assertEqual((binding["name"], binding["object"]["target"]), ("p", {"name": "n"}))

    def test_scale(self) -> None:
        """Scales are reviewed and patched as Scale objects."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        self.send_request("POST", path, {"metadata": {"name": "d"}, "spec": spec})
        self.configure(webhook(**rule("deployments/scale")), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("replace", "/spec/replicas", 5))
        answer = self.send_request(
            "PATCH", f"{path}/d/scale", {"spec": {"replicas": 3}}, Content_Type="application/merge-patch+json"
        )
        self.assertEqual(answer["spec"], {"replicas": 5})
        (request,) = self.requests
        self.assertEqual(request["kind"], {"group": "autoscaling", "version": "v1", "kind": "Scale"})
        self.assertEqual((request["object"]["spec"], request["oldObject"]["spec"]), ({"replicas": 3}, {"replicas": 1}))
        self.assertEqual(self.send_request("GET", f"{path}/d")["spec"]["replicas"], 5)

    def test_reviews(self) -> None:
        """Access reviews are admitted like other objects."""
        self.configure(webhook(**rule("subjectaccessreviews")))
        self.outgoing.answer = lambda url, review: {"allowed": False}
        spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.assertEqual(self.request_error("POST", path, {"spec": spec})[0], 400)

    def test_dry_run(self) -> None:
        """In a dry run only webhooks without side effects are called."""
        self.configure(webhook())
        self.send_request("POST", f"{MAPS}?dryRun=All", config_map("m"))
        (request,) = self.requests
        self.assertEqual((request["dryRun"], request["options"]["dryRun"]), (True, ["All"]))
        for compiled in self.server.registry.admission.plugins[1]._configurations.webhooks:
            compiled.supports_dry_run = False  # As in a configuration that an older release accepted.
        message = 'admission webhook "a.example.org" does not support dry run'
        self.assertEqual(self.request_error("POST", f"{MAPS}?dryRun=All", config_map("m")), (400, message))

    def test_warnings(self) -> None:
        """Warnings of webhooks are sent to the client, also if another webhook denies the request."""
        self.configure(webhook("a.example.org"), webhook("b.example.org"))

        def answer(url: str, review: Any) -> Any:
            return {"allowed": url.endswith("a.example.org"), "warnings": [f"beware of {url[-13:]}"]}

        self.outgoing.answer = answer
        answered = self.client.answer("POST", MAPS, config_map("m"))
        self.assertEqual(answered.code, 400)
        warnings = [value for name, value in answered.headers.items() if name.lower() == "warning"]
        self.assertEqual(len(warnings), 1)
        self.assertIn("beware of a.example.org", str(answered.headers))
        self.assertIn("beware of b.example.org", str(answered.headers))

    def test_parallel(self) -> None:
        """All webhooks are called concurrently; the request waits for each."""
        waiting: list[Deferred[Any]] = []

        def answer(url: str, review: Any) -> Any:
            waiting.append(Deferred())
            return waiting[-1]

        self.configure(webhook("a.example.org"), webhook("b.example.org"))
        self.outgoing.answer = answer
        body = b'{"metadata":{"name":"m"}}'
        head = (
            f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.client.send(head.encode() + body)
        self.assertEqual(len(waiting), 2)
        waiting[1].callback({"allowed": True})
        self.assertEqual(self.client.taken(), b"")
        waiting[0].callback({"allowed": True})
        self.assertTrue(self.client.taken().startswith(b"HTTP/1.1 201 "))

    def test_failures(self) -> None:
        """A failed call rejects or admits the request, by failurePolicy."""
        failed = 'Internal error occurred: failed calling webhook "a.example.org": '
        call = CallError("POST", "https://hooks.example.org/a?timeout=10s", "connection refused")

        def raw(body: bytes, code: int = 200, kind: str = "application/json") -> Response:
            return Response(code, {"content-type": kind}, body)

        review = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"%b}'
        cases: list[tuple[Any, str]] = [
            (call, f"failed to call webhook: {call}"),
            (raw(b"no", 404, "text/plain"), "failed to call webhook: the server could not find the requested resource"),
            (raw(review % b""), "received invalid webhook response: webhook response was absent"),
            (
                raw(review % b',"response":{"uid":"x","allowed":true}'),
                "received invalid webhook response: expected response.uid=",
            ),
            (raw(b'{"response":{"allowed":true}}'), "received invalid webhook response: expected response.uid="),
            (raw(b"[]"), "failed to call webhook: couldn't get version/kind; json parse error: "),
            (
                raw(b'{"kind":"Pod","apiVersion":"v1"}'),
                'failed to call webhook: no kind "Pod" is registered for version "v1"',
            ),
            ({"allowed": "yes"}, "failed to call webhook: json: cannot unmarshal string into Go struct field "),
            (
                {"allowed": True, "patch": "W10="},
                "received invalid webhook response: validating webhook may not return response.patch",
            ),
        ]
        self.configure(webhook())
        for answer, text in cases:
            self.outgoing.answer = lambda url, review, answer=answer: answer
            code, message = self.request_error("POST", MAPS, config_map("m"))
            self.assertEqual((code, message[: len(failed + text)]), (500, failed + text))
        for resource in ("validatingwebhookconfigurations",):
            change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
            path = f"/apis/admissionregistration.k8s.io/v1/{resource}/hooks"
            self.send_request("PATCH", path, change, Content_Type="application/json-patch+json")
        for index, (answer, _) in enumerate(cases):
            self.outgoing.answer = lambda url, review, answer=answer: answer
            self.config_map(f"m{index}")

    def test_internal_errors(self) -> None:
        """An internal error of the server is not a failed call: the request is rejected."""
        self.configure(webhook(failurePolicy="Ignore"))
        self.outgoing.answer = lambda url, review: RuntimeError("a bug")
        self.assertEqual(
            self.request_error("POST", MAPS, config_map("m")),
            (
                500,
                'Internal error occurred: admission plugin "ValidatingAdmissionWebhook" failed to complete validation',
            ),
        )
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_older_review(self) -> None:
        """A webhook that supports only v1beta1 is called with that; the uid of its response is ignored."""
        self.configure(webhook(admissionReviewVersions=["v2", "v1beta1", "v1"]))
        self.outgoing.answer = lambda url, review: {"uid": "whatever", "allowed": True}
        self.config_map()
        self.assertEqual(self.outgoing.calls[0][1]["apiVersion"], "admission.k8s.io/v1beta1")


class ReviewTests(WebhookTestCase):
    """Access reviews in a release that exempts them."""

    features = FeatureGates((1, 37))

    def test_exempt(self) -> None:
        """Webhooks are not called for access reviews."""
        self.configure(webhook(**rule("subjectaccessreviews")))
        self.outgoing.answer = lambda url, review: {"allowed": False}
        spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.assertTrue(self.send_request("POST", path, {"spec": spec})["status"]["allowed"])
        self.assertEqual(self.outgoing.calls, [])
