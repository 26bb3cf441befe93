"""Tests for L{kubetwist.testing.webhookservice}, without connections. F{tests/e2e/test_operators.py} has servers."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, integers, lists, sampled_from, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import webhookservice
from kubetwist.testing.webhookservice import (
    AdmissionAnswer,
    Denied,
    WebhookService,
    WebhookSetupError,
    answer_of,
    rules_of,
)

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class RulesTests(SynchronousTestCase):
    """C{rules_of}."""

    def test_texts(self) -> None:
        """A text is a resource with its group and subresource."""
        rules = rules_of(["pods", "deployments.apps", "things.example.com/status"], ["CREATE"])
        self.assertEqual([rule["apiGroups"] for rule in rules], [[""], ["apps"], ["example.com"]])
        self.assertEqual([rule["resources"] for rule in rules], [["pods"], ["deployments"], ["things/status"]])
        self.assertEqual({tuple(rule["operations"]) for rule in rules}, {("CREATE",)})

    def test_objects(self) -> None:
        """Rules as in configurations are used unchanged, alone and in lists."""
        rule = {"apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}
        self.assertEqual(rules_of(rule, ["CREATE"]), [rule])
        self.assertEqual(rules_of([rule, "pods"], ["CREATE"])[0], rule)


class AnswerTests(SynchronousTestCase):
    """C{answer_of}."""

    def patch_of(self, response: Any) -> Any:
        """Return the operations in a response."""
        self.assertEqual((response["allowed"], response["patchType"]), (True, "JSONPatch"))
        return json.loads(base64.b64decode(response["patch"]))

    def test_decisions(self) -> None:
        """A result without a change is a decision, with an optional message."""
        for result in (None, True):
            self.assertEqual(answer_of(result, {}, {}, mutating=True), {"allowed": True})
        self.assertEqual(answer_of(False, {}, {}, mutating=False), {"allowed": False})
        denied = {"allowed": False, "status": {"message": "no", "code": 403}}
        self.assertEqual(answer_of("no", {}, {}, mutating=False), denied)
        # A denied request is not changed.
        self.assertEqual(answer_of("no", {}, {"a": 1}, mutating=True), denied)

    def test_changes(self) -> None:
        """A mutating webhook returns an object or operations, or changes the object of the request."""
        added = [{"op": "add", "path": "/a", "value": 1}]
        self.assertEqual(self.patch_of(answer_of({"a": 1}, {}, {}, mutating=True)), added)
        self.assertEqual(self.patch_of(answer_of(added, {}, {}, mutating=True)), added)
        self.assertEqual(self.patch_of(answer_of(None, {}, {"a": 1}, mutating=True)), added)

    def test_complete(self) -> None:
        """A complete answer has warnings and annotations."""
        answer = AdmissionAnswer(warnings=["old"], audit_annotations={"a": "b"})
        expected = {"allowed": True, "warnings": ["old"], "auditAnnotations": {"a": "b"}}
        self.assertEqual(answer_of(answer, {}, {}, mutating=False), expected)

    def test_wrong(self) -> None:
        """Other results are errors, also an object of a validating webhook."""
        self.assertRaises(TypeError, answer_of, 7, {}, {}, mutating=True)
        self.assertRaises(TypeError, answer_of, {}, {}, {}, mutating=False)

    @given(dictionaries(text(max_size=3), integers()), dictionaries(text(max_size=3), lists(integers(), max_size=2)))
    def test_in_place(self, original: Any, changed: Any) -> None:
        """A change in place has the same answer as a changed copy, and a validating webhook changes nothing."""
        self.assertEqual(
            answer_of(None, original, changed, mutating=True), answer_of(changed, original, original, mutating=True)
        )
        self.assertEqual(answer_of(None, original, changed, mutating=False), {"allowed": True})


class Server:
    """An HTTPS server without connections."""

    url = "https://127.0.0.1:1"
    ca = b"ca"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class ServiceTests(SynchronousTestCase):
    """Webhooks and their configurations."""

    def setUp(self) -> None:
        """Make a service, whose API server keeps objects by their paths."""
        self.patch(webhookservice, "HTTPSThread", Server)
        self.objects: dict[str, Any] = {}
        self.refusal: tuple[int, Any] | None = None
        self.service = WebhookService(self)  # type: ignore[arg-type] # it has request()

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        """Answer as an API server."""
        if self.refusal is not None:
            return self.refusal
        if method == "POST":
            self.objects[f"{path}/{body['metadata']['name']}"] = body
            return 201, body
        if path not in self.objects:
            return 404, {"message": "not found"}
        if method == "DELETE":
            del self.objects[path]
        elif method == "PATCH":
            self.objects[path]["spec"]["conversion"] = body[0]["value"]
        return 200, self.objects.get(path, {})

    def review(self, path: str, **request: Any) -> tuple[int, Any]:
        """Send a review to the service."""
        body = {"apiVersion": "v1", "kind": "Review", "request": {"uid": "1", **request}}
        return self.service._serve(path, body)

    def test_configured(self) -> None:
        """A configuration exists until its webhook is removed, or to the end."""
        with self.service as service:
            first = service.validating("pods", lambda request: None, namespace="mine", failurePolicy="Ignore")
            service.validating("pods", lambda request: None, name="second.example.com")
            (path, other) = self.objects
            self.assertEqual(
                (path, other),
                (f"{CONFIGURATIONS}/w0.validating.kubetwist.test", f"{CONFIGURATIONS}/second.example.com"),
            )
            (entry,) = self.objects[path]["webhooks"]
            self.assertEqual(entry["clientConfig"], {"url": "https://127.0.0.1:1/w0", "caBundle": "Y2E="})
            self.assertEqual(entry["failurePolicy"], "Ignore")
            self.assertEqual(entry["namespaceSelector"], {"matchLabels": {"kubernetes.io/metadata.name": "mine"}})
            first.remove()
            first.remove()
            self.assertEqual(list(self.objects), [other])
        self.assertEqual(self.objects, {})

    def test_answers(self) -> None:
        """Requests reach their webhook, which records them as they were before its changes."""

        def label(request: Any) -> None:
            request["object"]["a"] = 1

        with self.service as service:
            webhook = service.mutating("pods", label)
            code, answer = self.review("/w0", object={})
            self.assertEqual((code, answer["response"]["uid"], answer["kind"]), (200, "1", "Review"))
            self.assertEqual(webhook.requests, [{"uid": "1", "object": {}}])
            self.assertEqual(self.review("/w1")[0], 404)
            self.assertEqual(service._serve("/w0", [])[0], 400)

    def test_denied(self) -> None:
        """C{Denied} has a status code and a reason."""

        def deny(request: Any) -> None:
            raise Denied("no", code=422, reason="Invalid")

        with self.service as service:
            service.validating("pods", deny)
            _, answer = self.review("/w0", object={})
        status = {"message": "no", "code": 422, "reason": "Invalid"}
        self.assertEqual(answer["response"], {"allowed": False, "status": status, "uid": "1"})

    def test_failing_handler(self) -> None:
        """An exception of a handler is an error of the webhook, and is raised at the end."""
        service = self.service.__enter__()
        service.validating("pods", lambda request: request["nothing"])
        code, text = self.review("/w0", object={})
        self.assertEqual((code, text), (500, "the handler of the test failed: KeyError('nothing')"))
        self.assertRaises(KeyError, service.__exit__, None, None, None)
        self.assertEqual(self.objects, {})
        # The error of the test comes first.
        service.__exit__(ValueError, ValueError(), None)

    def test_refused(self) -> None:
        """A refusal of the API server is an error with its message."""
        self.refusal = (422, {"message": "is invalid"})
        with self.service as service:
            error = self.assertRaises(WebhookSetupError, service.validating, "pods", lambda request: None)
            self.assertIn("422: is invalid", str(error))

    @given(sampled_from([None, {"strategy": "None"}, {"strategy": "Webhook", "webhook": {}}]))
    def test_conversion(self, before: Any) -> None:
        """Objects are converted one by one; the definition has its old conversion afterwards."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"
        self.objects = {path: {"spec": {"conversion": before} if before else {}}}
        self.service = WebhookService(self)  # type: ignore[arg-type] # it has request()
        with self.service as service:
            service.conversion("things.example.com", lambda obj, wanted: {**obj, "to": wanted})
            self.assertEqual(self.objects[path]["spec"]["conversion"]["strategy"], "Webhook")
            objects = [{"apiVersion": "example.com/v1", "n": n} for n in range(2)]
            _, answer = self.review("/w0", desiredAPIVersion="example.com/v2", objects=objects)
            converted = [{"apiVersion": "example.com/v2", "n": n, "to": "example.com/v2"} for n in range(2)]
            self.assertEqual(answer["response"]["convertedObjects"], converted)
        self.assertEqual(self.objects[path]["spec"]["conversion"], before or {"strategy": "None"})
