"""
Webhooks for tests that block: Python functions as validating, mutating and conversion webhooks of a server.

The functions run in threads of an HTTPS server, wherever the API server runs: in a thread, a child or a process.
The objects that configure the API server are created with them, and removed at the end.
L{kubetwist.testing.webhooks} has a server on the reactor, whose function sees whole requests.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final

from attrs import field, frozen

from ..api.jsontypes import JSONObject, JSONValue
from ._connection import Connection
from ._httpsthread import HTTPSThread
from ._jsondiff import json_patch

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULT_OPERATIONS: Final = ("CREATE", "UPDATE")

#: The rules of a webhook: C{"pods"}, C{"deployments.apps"}, objects with the fields of RuleWithOperations, or a list.
Rules = str | Mapping[str, JSONValue] | Sequence["str | Mapping[str, JSONValue]"]
#: Called with C{request} of an AdmissionReview; see L{WebhookService.validating} for its result.
AdmissionHandler = Callable[[JSONObject], Any]
#: Called with an object and the wanted C{apiVersion}; returns the converted object.
ConversionHandler = Callable[[JSONObject, str], JSONObject]


class WebhookSetupError(Exception):
    """The API server refused an object that configures a webhook."""


class Denied(Exception):
    """
    Raised by a handler to deny a request.

    @ivar code: The status code that the client receives.
    @ivar reason: The reason in its Status.
    """

    def __init__(self, message: str, *, code: int = 403, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@frozen
class AdmissionAnswer:
    """
    A complete answer of an admission webhook.

    @ivar patch: Operations of a JSON patch.
    @ivar warnings: Warnings for the client.
    @ivar audit_annotations: Annotations of the audit event.
    """

    allowed: bool = True
    message: str = ""
    patch: Sequence[JSONObject] = ()
    warnings: Sequence[str] = ()
    audit_annotations: Mapping[str, str] = field(factory=dict)


class Webhook:
    """
    A webhook that is configured.

    @ivar requests: The C{request} of each AdmissionReview or ConversionReview, in the order of arrival.
    """

    def __init__(self, answer: Callable[[JSONObject], JSONObject], remove: Callable[[], None]) -> None:
        self.requests: list[JSONObject] = []
        self._answer = answer
        self._remove = remove

    def remove(self) -> None:
        """Remove the configuration from the API server. Idempotent."""
        remove, self._remove = self._remove, lambda: None
        remove()


class WebhookService:
    """
    A context manager that serves webhooks for the server of a connection.

    @ivar errors: The exceptions of handlers, except for L{Denied}. The first one is raised at the end.
    """

    def __init__(self, connection: Connection) -> None:
        self.errors: list[Exception] = []
        self._connection = connection
        self._server = HTTPSThread(self._serve)
        self._webhooks: dict[str, Webhook] = {}
        self._lock = threading.Lock()
        self._cleanup = ExitStack()

    @property
    def url(self) -> str:
        """Return the URL of the server, without a path."""
        return self._server.url

    @property
    def ca(self) -> bytes:
        """Return the certificate of its authority, PEM."""
        return self._server.ca

    def __enter__(self) -> WebhookService:
        self._server.start()
        self._cleanup.callback(self._server.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cleanup.close()
        if self.errors and error is None:
            raise self.errors[0]

    def validating(
        self,
        rules: Rules,
        handler: AdmissionHandler,
        *,
        operations: Sequence[str] = DEFAULT_OPERATIONS,
        namespace: str = "",
        name: str = "",
        **fields: JSONValue,
    ) -> Webhook:
        """
        Add a validating webhook.

        @param rules: What it is called for: C{"configmaps"}, C{"deployments.apps"}, C{"pods/status"}, rules as in
            a configuration, or a list of these.
        @param handler: Called with the request of the review (C{object}, C{oldObject}, C{operation}, C{userInfo}, ...).
            L{None} and C{True} allow, C{False} and a text, the message, deny; or an L{AdmissionAnswer}. It may raise
            L{Denied}.
        @param operations: The operations of rules that are texts.
        @param namespace: Restricts the webhook to one namespace, so that controllers and other tests are not affected.
        @param name: The name of the webhook and of its configuration; it has at least two dots.
        @param fields: Further fields of the webhook, such as C{failurePolicy} and C{matchConditions}.
        @raise WebhookSetupError: The API server refused the configuration.
        """
        return self._admission("Validating", rules, handler, operations, namespace, name, fields)

    def mutating(
        self,
        rules: Rules,
        handler: AdmissionHandler,
        *,
        operations: Sequence[str] = DEFAULT_OPERATIONS,
        namespace: str = "",
        name: str = "",
        **fields: JSONValue,
    ) -> Webhook:
        """
        Add a mutating webhook.

        @param handler: As for L{validating}. It may also return the changed object, or the operations of a JSON patch.
            It may change C{request["object"]} in place.
        """
        return self._admission("Mutating", rules, handler, operations, namespace, name, fields)

    def conversion(self, definition: str, handler: ConversionHandler) -> Webhook:
        """
        Convert custom resources by a webhook, until it is removed.

        @param definition: The name of the CustomResourceDefinition, such as C{"things.example.com"}.
        @param handler: Called with an object and the wanted C{apiVersion}; it returns the converted object, whose
            C{apiVersion} is set afterwards. An exception fails the conversion.
        @raise WebhookSetupError: The API server refused the change of the definition.
        """
        path = f"{DEFINITIONS}/{definition}"
        before = self._request("GET", path)["spec"].get("conversion") or {"strategy": "None"}

        def convert(request: JSONObject) -> JSONObject:
            wanted = request["desiredAPIVersion"]
            converted = [{**handler(one, wanted), "apiVersion": wanted} for one in request["objects"]]
            return {"convertedObjects": converted, "result": {"status": "Success"}}

        def restore() -> None:
            patch = [{"op": "add", "path": "/spec/conversion", "value": before}]
            self._request("PATCH", path, patch, absent=True, content_type="application/json-patch+json")

        webhook, client_config = self._add(convert, restore)
        mine = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
        value = {"strategy": "Webhook", "webhook": mine}
        patch = [{"op": "add", "path": "/spec/conversion", "value": value}]
        self._request("PATCH", path, patch, content_type="application/json-patch+json")
        self._cleanup.callback(webhook.remove)
        return webhook

    def _admission(
        self,
        kind: str,
        rules: Rules,
        handler: AdmissionHandler,
        operations: Sequence[str],
        namespace: str,
        name: str,
        fields: Mapping[str, JSONValue],
    ) -> Webhook:
        path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"

        def review(request: JSONObject) -> JSONObject:
            original = copy.deepcopy(request.get("object"))
            try:
                result = handler(request)
            except Denied as denial:
                status = {"message": str(denial), "code": denial.code, "reason": denial.reason}
                return {"allowed": False, "status": status}
            return answer_of(result, original, request.get("object"), mutating=kind == "Mutating")

        def remove() -> None:
            self._request("DELETE", f"{path}/{name}", absent=True)

        webhook, client_config = self._add(review, remove)
        name = name or f"{client_config['url'].rpartition('/')[2]}.{kind.lower()}.kubetwist.test"
        entry: JSONObject = {
            "name": name,
            "clientConfig": client_config,
            "rules": rules_of(rules, operations),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        if namespace:
            entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [entry],
        }
        self._request("POST", path, configuration)
        self._cleanup.callback(webhook.remove)
        return webhook

    def _add(
        self, answer: Callable[[JSONObject], JSONObject], remove: Callable[[], None]
    ) -> tuple[Webhook, dict[str, str]]:
        """Return a new webhook, and its C{clientConfig}."""
        webhook = Webhook(answer, remove)
        with self._lock:
            path = f"/w{len(self._webhooks)}"
            self._webhooks[path] = webhook
        return webhook, {"url": f"{self.url}{path}", "caBundle": base64.b64encode(self.ca).decode()}

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        absent: bool = False,
        content_type: str = "application/json",
    ) -> Any:
        """
        Send a request to the API server.

        @param absent: Whether the object may be missing.
        """
        code, answer = self._connection.request(method, path, body, content_type=content_type)
        if code >= 400 and not (absent and code == 404):
            message = answer.get("message") if isinstance(answer, dict) else answer
            raise WebhookSetupError(f"{method} {path}: {code}: {message}")
        return answer

    def _serve(self, path: str, body: Any) -> tuple[int, JSONValue]:
        """Answer a review; called in a thread."""
        webhook = self._webhooks.get(path)
        if webhook is None:
            return 404, f"there is no webhook at {path}"
        if not isinstance(body, dict) or not isinstance(body.get("request"), dict):
            return 400, "the body is no review"
        request = body["request"]
        with self._lock:
            webhook.requests.append(copy.deepcopy(request))
        try:
            response = {**webhook._answer(request), "uid": request.get("uid")}
            json.dumps(response)
        except Exception as error:
            with self._lock:
                self.errors.append(error)
            return 500, f"the handler of the test failed: {error!r}"
        return 200, {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "response": response}


def rules_of(rules: Rules, operations: Sequence[str]) -> list[JSONObject]:
    """
    Return the rules of a webhook.

    @param rules: See L{WebhookService.validating}.
    @param operations: The operations of rules that are texts.
    """
    if isinstance(rules, str):
        resource, _, subresource = rules.partition("/")
        plural, _, group = resource.partition(".")
        name = f"{plural}/{subresource}" if subresource else plural
        return [{"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [name]}]
    if isinstance(rules, Mapping):
        return [dict(rules)]
    return [rule for one in rules for rule in rules_of(one, operations)]


def answer_of(result: Any, original: JSONValue, changed: JSONValue, *, mutating: bool) -> JSONObject:
    """
    Return the response of an AdmissionReview, except for its uid.

    @param result: What the handler returned.
    @param original: The object of the request before the call of the handler.
    @param changed: The same object after it.
    @param mutating: Whether the webhook may change the object.
    @raise TypeError: The result is none that handlers return.
    """
    if isinstance(result, AdmissionAnswer):
        answer = result
    elif result is None or isinstance(result, bool):
        answer = AdmissionAnswer(allowed=result is not False)
    elif isinstance(result, str):
        answer = AdmissionAnswer(allowed=False, message=result)
    elif mutating and isinstance(result, Mapping):
        changed, answer = dict(result), AdmissionAnswer()
    elif mutating and isinstance(result, Sequence):
        answer = AdmissionAnswer(patch=result)
    else:
        raise TypeError(f"a {'mutating' if mutating else 'validating'} webhook returned {type(result).__name__}")
    response: JSONObject = {"allowed": answer.allowed}
    patch = list(answer.patch) or (json_patch(original, changed) if mutating else [])
    if patch and answer.allowed:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    if not answer.allowed and answer.message:
        response["status"] = {"message": answer.message, "code": 403}
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    if answer.audit_annotations:
        response["auditAnnotations"] = dict(answer.audit_annotations)
    return response
