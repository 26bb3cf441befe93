"""Tests for L{kubetwist.admission_plugins.webhooks}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.api.options import UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Answer
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from kubetwist.registry.generic.updates import UpdateRules
from tests.admission_plugins.fakes import starting_over
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, patch, webhook
from tests.resources.server import config_map, pod

MAPS = "/api/v1/namespaces/default/configmaps"


def rule(*resources: str, operations: tuple[str, ...] = ("*",), **more: Any) -> dict[str, Any]:
    """A rule for everything of some resources."""
    return {
        "rules": [
            {
                "operations": list(operations),
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "resources": list(resources),
                **more,
            }
        ]
    }


class ValidatingTests(WebhookTestCase):
    """Webhooks that look."""

    def test_interfaces(self) -> None:
        """The plugins are what they say."""
        mutating, validating = self.server.stores.admission.plugins
        verifyObject(IMutatingAdmission, mutating)
        verifyObject(IValidatingAdmission, validating)

    def test_lost_place(self) -> None:
        """While caches start over, what they had goes on to hold, be it nothing; then what they have become does."""
        caches = [store.cache for store in self.server.stores if "webhookconf" in store.cache.prefix]
        self.assertEqual(len(caches), 2)
        with starting_over(self.server, caches):
            self.config_map("a")
        self.configure(webhook())
        with starting_over(self.server, caches):
            self.config_map("b")
        self.assertEqual(len(self.outgoing.calls), 1)
        self.config_map("c")
        self.assertEqual(len(self.outgoing.calls), 2)

    def test_request(self) -> None:
        """A webhook is told of the request, the user and the object as it will be stored."""
        self.configure(webhook())
        self.ask("POST", f"{MAPS}?fieldManager=me&fieldValidation=Strict", config_map("m", a="b"))
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

    def test_refusal(self) -> None:
        """What a webhook does not allow is not stored; code, reason and message are its own."""
        self.configure(webhook())
        said: dict[str, Any] = {"code": 409, "reason": "Conflict", "message": "not today"}
        for status, expected in (
            (said, (409, 'admission webhook "a.example.org" denied the request: not today')),
            ({"reason": "Because"}, (400, 'admission webhook "a.example.org" denied the request: Because')),
            (None, (400, 'admission webhook "a.example.org" denied the request without explanation')),
            ({"code": 200, "message": "x"}, (400, 'admission webhook "a.example.org" denied the request: x')),
        ):
            response = {"allowed": False, "status": status}
            self.outgoing.answer = lambda url, review, response=response: response
            self.assertEqual(self.refused("POST", MAPS, config_map("m")), expected)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/m")[0], 404)

    def test_timeout(self) -> None:
        """A webhook has as long as it says, but no longer than the request has."""
        self.configure(webhook(timeoutSeconds=20))
        self.config_map("one")
        self.ask("POST", f"{MAPS}?timeout=4s", config_map("two"))
        self.assertEqual(self.outgoing.timeouts, [20, 4])

    def test_details(self) -> None:
        """Details of a refusal are told, and when to try again."""
        self.configure(webhook())
        status = {"code": 429, "reason": "TooManyRequests", "message": "wait", "details": {"retryAfterSeconds": 7}}
        self.outgoing.answer = lambda url, review: {"allowed": False, "status": status}
        answered = self.client.answer("POST", MAPS, config_map("m"))
        self.assertEqual(answered.code, 429)
        self.assertIn("retry-after", str(answered.headers).lower())

    def test_operations(self) -> None:
        """Updates show both states, deletions the old one; rules say which operations are meant."""
        self.configure(webhook(**rule("configmaps", operations=("UPDATE", "DELETE"))))
        self.config_map()
        self.assertEqual(self.requests, [])
        self.ask("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, Content_Type="application/merge-patch+json")
        self.ask("DELETE", f"{MAPS}/m?propagationPolicy=Background&gracePeriodSeconds=3")
        update, delete = self.requests
        self.assertEqual((update["operation"], update["object"]["data"]), ("UPDATE", {"a": "b"}))
        self.assertNotIn("data", update["oldObject"])
        self.assertEqual(update["oldObject"]["kind"], "ConfigMap")
        self.assertEqual(update["options"], {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})
        self.assertEqual((delete["operation"], delete["object"]), ("DELETE", None))
        self.assertEqual(delete["oldObject"]["data"], {"a": "b"})
        self.assertEqual(
            delete["options"],
            {
                "kind": "DeleteOptions",
                "apiVersion": "meta.k8s.io/v1",
                "gracePeriodSeconds": 3,
                "propagationPolicy": "Background",
            },
        )

    def test_collections(self) -> None:
        """A webhook is called for each object of a deletecollection, with its old state and without a name."""
        self.configure(webhook(**rule("configmaps", operations=("DELETE",))))
        self.config_map("one")
        self.config_map("two")
        self.ask("DELETE", MAPS)
        self.assertEqual(sorted(one["oldObject"]["metadata"]["name"] for one in self.requests), ["one", "two"])
        self.assertFalse(any("name" in request for request in self.requests))

    def test_apply(self) -> None:
        """What an apply creates is a creation, and later an update."""
        self.configure(webhook(**rule("configmaps")))
        for _ in range(2):
            body = config_map("m", a=str(len(self.requests)))
            self.ask("PATCH", f"{MAPS}/m?fieldManager=f", body, Content_Type="application/apply-patch+yaml")
        self.assertEqual([request["operation"] for request in self.requests], ["CREATE", "UPDATE"])
        self.assertEqual([request["options"]["kind"] for request in self.requests], ["CreateOptions", "UpdateOptions"])

    def test_subresources(self) -> None:
        """A rule means the subresources that it names; C{*} alone means none of them."""
        self.configure(webhook("main.example.org", **rule("*")), webhook("all.example.org", **rule("*/*")))
        self.ask("POST", "/api/v1/namespaces/default/pods", pod("p"))
        self.ask(
            "POST", "/api/v1/namespaces/default/pods/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}
        )
        self.ask(
            "PATCH",
            "/api/v1/namespaces/default/pods/p/status",
            {"status": {"phase": "Running"}},
            Content_Type="application/merge-patch+json",
        )
        asked = [
            (url.rpartition("/")[2], review["request"].get("subResource", ""), review["request"]["kind"]["kind"])
            for url, review in self.outgoing.calls
        ]
        self.assertEqual(
            asked,
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
        """Scales are seen, and changed, as what they are."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        self.ask("POST", path, {"metadata": {"name": "d"}, "spec": spec})
        self.configure(webhook(**rule("deployments/scale")), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("replace", "/spec/replicas", 5))
        answer = self.ask(
            "PATCH", f"{path}/d/scale", {"spec": {"replicas": 3}}, Content_Type="application/merge-patch+json"
        )
        self.assertEqual(answer["spec"], {"replicas": 5})
        (request,) = self.requests
        self.assertEqual(request["kind"], {"group": "autoscaling", "version": "v1", "kind": "Scale"})
        self.assertEqual((request["object"]["spec"], request["oldObject"]["spec"]), ({"replicas": 3}, {"replicas": 1}))
        self.assertEqual(self.ask("GET", f"{path}/d")["spec"]["replicas"], 5)

    def test_scope(self) -> None:
        """Rules can be for what is in namespaces, or for the rest; a namespace is not in itself."""
        self.configure(
            webhook("inside.example.org", **rule("*", scope="Namespaced")),
            webhook("outside.example.org", **rule("*", scope="Cluster")),
        )
        self.config_map()
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        asked = [(url.rpartition("/")[2], review["request"]["name"]) for url, review in self.outgoing.calls]
        self.assertEqual(asked, [("inside.example.org", "m"), ("outside.example.org", "other")])

    def test_selectors(self) -> None:
        """Labels of the namespace, and of the object before or after, decide, too."""
        self.configure(
            webhook("here.example.org", namespaceSelector={"matchLabels": {"team": "a"}}),
            webhook("there.example.org", namespaceSelector={"matchLabels": {"team": "b"}}),
            webhook("mine.example.org", objectSelector={"matchLabels": {"x": "y"}}, **rule("configmaps")),
        )
        self.config_map("plain")
        self.config_map("labelled", labels={"x": "y"})
        unlabel = [{"op": "remove", "path": "/metadata/labels/x"}]
        self.ask("PATCH", f"{MAPS}/labelled", unlabel, Content_Type="application/json-patch+json")
        asked = [(url.rpartition("/")[2], review["request"]["name"]) for url, review in self.outgoing.calls]
        self.assertEqual(
            asked,
            [
                ("here.example.org", "plain"),
                ("here.example.org", "labelled"),
                ("mine.example.org", "labelled"),
                ("mine.example.org", "labelled"),
            ],
        )

    def test_missing_namespace(self) -> None:
        """Where the labels of a namespace matter, it must be there."""
        self.configure(webhook(namespaceSelector={"matchLabels": {"team": "a"}}))
        expected = (404, 'namespaces "nowhere" not found')
        self.assertEqual(
            self.refused("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "m"}}), expected
        )

    def test_equivalent(self) -> None:
        """A request in another version than the rules name is shown in theirs; unless they want no other."""
        for policy in ("Equivalent", "Exact"):
            versions = rule("horizontalpodautoscalers")
            versions["rules"][0] |= {"apiGroups": ["autoscaling"], "apiVersions": ["v1"]}
            self.configure(
                webhook(f"{policy.lower()}.example.org", matchPolicy=policy, **versions), name=policy.lower()
            )
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        obj = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]}}
        self.ask("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", obj)
        (request,) = self.requests
        self.assertEqual((request["resource"]["version"], request["requestResource"]["version"]), ("v1", "v2"))
        self.assertEqual((request["kind"]["version"], request["requestKind"]["version"]), ("v1", "v2"))
        shown = request["object"]
        self.assertEqual((shown["apiVersion"], shown["spec"]["targetCPUUtilizationPercentage"]), ("autoscaling/v1", 50))

    def test_reviews(self) -> None:
        """Questions to the server pass admission as objects do."""
        self.configure(webhook(**rule("subjectaccessreviews")))
        self.outgoing.answer = lambda url, review: {"allowed": False}
        spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.assertEqual(self.refused("POST", path, {"spec": spec})[0], 400)

    def test_configurations_are_exempt(self) -> None:
        """Webhooks are not asked about webhooks, so that one that refuses everything can be taken away."""
        self.configure(webhook(**rule("*/*")), webhook("b.example.org", **rule("*/*")))
        self.outgoing.answer = lambda url, review: {"allowed": False}
        self.ask("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks")
        self.assertEqual(self.requests, [])
        self.config_map()

    def test_changed_configuration(self) -> None:
        """A configuration that changes holds in its new form from the next request on."""
        self.configure(webhook())
        self.config_map("one")
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks"
        url = [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": "https://elsewhere.example.org"}]
        self.ask("PATCH", path, url, Content_Type="application/json-patch+json")
        self.config_map("two")
        self.assertEqual([url for url, _ in self.outgoing.calls][1:], ["https://elsewhere.example.org"])

    def test_dry_run(self) -> None:
        """In a dry run only those are called who promise that nothing comes of it."""
        self.configure(webhook())
        self.ask("POST", f"{MAPS}?dryRun=All", config_map("m"))
        (request,) = self.requests
        self.assertEqual((request["dryRun"], request["options"]["dryRun"]), (True, ["All"]))
        for compiled in self.server.stores.admission.plugins[1]._configurations.webhooks:
            compiled.dry = False  # As one that was stored when that was still allowed.
        message = 'admission webhook "a.example.org" does not support dry run'
        self.assertEqual(self.refused("POST", f"{MAPS}?dryRun=All", config_map("m")), (400, message))

    def test_conditions(self) -> None:
        """Expressions decide, too; they see the request, both objects, and what its user may do."""

        def condition(expression: str) -> dict[str, Any]:
            return {"matchConditions": [{"name": "c", "expression": expression}, {"name": "d", "expression": "true"}]}

        for index, (expression, called) in enumerate(
            (
                ("object.metadata.name.startsWith('m')", True),
                ("object.metadata.name == 'other'", False),
                ("oldObject == null && request.operation == 'CREATE'", True),
                ("request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups", True),
                ("request.resource.resource == 'pods'", False),
                ("authorizer.requestResource.check('create').allowed()", True),
                ("authorizer.group('').resource('pods').check('get').allowed()", True),
                ("has(request.options.fieldManager)", False),
                ("!request.dryRun", True),
            )
        ):
            self.configure(webhook(**condition(expression)), name=f"c{index}")
            self.outgoing.calls.clear()
            self.config_map(f"m{index}")
            self.assertEqual(bool(self.requests), called, expression)
            self.ask("DELETE", f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c{index}")

    def test_bad_conditions(self) -> None:
        """What can not be told refuses, or leaves the webhook out, as its policy says; unless another says no."""
        fails = {"name": "c", "expression": "object.data.missing == 'x'"}
        self.configure(webhook(matchConditions=[fails]))
        expected = (
            403,
            "configmaps \"m\" is forbidden: expression 'object.data.missing == 'x'' resulted in error: "
            "no such key: missing",
        )
        self.assertEqual(self.refused("POST", MAPS, config_map("m", a="b")), expected)
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.ask("DELETE", f"{path}/hooks")
        self.configure(webhook(matchConditions=[fails, {"name": "d", "expression": "false"}]))
        self.config_map("one")
        self.ask("DELETE", f"{path}/hooks")
        self.configure(webhook(matchConditions=[fails], failurePolicy="Ignore"))
        self.config_map("two")
        self.assertEqual(self.requests, [])

    def test_condition_validation(self) -> None:
        """Conditions that do not compile to a yes or no are refused with their configuration."""
        for expression, text in (
            ("object.", "compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'"),
            ("params.x", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')"),
            ("1 + 1", "must evaluate to bool but got int"),
        ):
            hook = webhook(matchConditions=[{"name": "c", "expression": expression}])
            body = {"metadata": {"name": "bad"}, "webhooks": [hook]}
            code, message = self.refused(
                "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", body
            )
            self.assertEqual(code, 422)
            self.assertIn(f'webhooks[0].matchConditions[0].expression: Invalid value: "{expression}": ', message)
            self.assertIn(text, message)

    def test_warnings(self) -> None:
        """What a webhook warns of reaches the client, also when another one refuses."""
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
        """All are asked at once; the request waits for each."""
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
        """A call that fails refuses the request, or lets it pass, as the webhook's policy says."""
        failed = 'Internal error occurred: failed calling webhook "a.example.org": '
        call = CallError("POST", "https://hooks.example.org/a?timeout=10s", "connection refused")

        def raw(body: bytes, code: int = 200, kind: str = "application/json") -> Answer:
            return Answer(code, {"content-type": kind}, body)

        said = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"%b}'
        cases: list[tuple[Any, str]] = [
            (call, f"failed to call webhook: {call}"),
            (raw(b"no", 404, "text/plain"), "failed to call webhook: the server could not find the requested resource"),
            (raw(said % b""), "received invalid webhook response: webhook response was absent"),
            (
                raw(said % b',"response":{"uid":"x","allowed":true}'),
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
            code, message = self.refused("POST", MAPS, config_map("m"))
            self.assertEqual((code, message[: len(failed + text)]), (500, failed + text))
        for resource in ("validatingwebhookconfigurations",):
            change = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
            path = f"/apis/admissionregistration.k8s.io/v1/{resource}/hooks"
            self.ask("PATCH", path, change, Content_Type="application/json-patch+json")
        for index, (answer, _) in enumerate(cases):
            self.outgoing.answer = lambda url, review, answer=answer: answer
            self.config_map(f"m{index}")

    def test_bugs(self) -> None:
        """A failure of the server itself is no failure of the call: the request does not pass."""
        self.configure(webhook(failurePolicy="Ignore"))
        self.outgoing.answer = lambda url, review: RuntimeError("a bug")
        self.assertEqual(
            self.refused("POST", MAPS, config_map("m")),
            (
                500,
                'Internal error occurred: admission plugin "ValidatingAdmissionWebhook" failed to complete validation',
            ),
        )
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_older_review(self) -> None:
        """A webhook that speaks only the older version is spoken to in that; its uid is not looked at."""
        self.configure(webhook(admissionReviewVersions=["v2", "v1beta1", "v1"]))
        self.outgoing.answer = lambda url, review: {"uid": "whatever", "allowed": True}
        self.config_map()
        self.assertEqual(self.outgoing.calls[0][1]["apiVersion"], "admission.k8s.io/v1beta1")


class MutatingTests(WebhookTestCase):
    """Webhooks that change."""

    def test_patch(self) -> None:
        """What a webhook changes is stored, with the defaults of what it added."""
        self.configure(webhook(**rule("pods")), mutating=True)
        container = {"name": "side", "image": "side"}
        self.outgoing.answer = lambda url, review: patch(
            ("add", "/metadata/labels", {"a": "b"}), ("add", "/spec/containers/-", container), ("add", "/spec/bogus", 1)
        )
        made = self.ask("POST", "/api/v1/namespaces/default/pods", pod("p"))
        self.assertEqual(made["metadata"]["labels"], {"a": "b"})
        side = made["spec"]["containers"][1]
        self.assertEqual((side["name"], side["imagePullPolicy"]), ("side", "Always"))
        self.assertNotIn("bogus", made["spec"])
        request = self.requests[0]
        self.assertNotIn("uid", request["object"]["metadata"])

    def test_generated_name(self) -> None:
        """A name that the server makes is not known yet."""
        self.configure(webhook(), mutating=True)
        made = self.ask("POST", MAPS, {"metadata": {"generateName": "m-"}})
        (request,) = self.requests
        self.assertNotIn("name", request)
        self.assertTrue(made["metadata"]["name"].startswith("m-"))

    def test_order(self) -> None:
        """Webhooks are called in the order of their configurations and within them; each sees the work of the last."""
        self.configure(webhook("c.example.org"), webhook("a.example.org"), mutating=True, name="second")
        self.configure(webhook("b.example.org"), mutating=True, name="first")

        def answer(url: str, review: Any) -> Any:
            data = review["request"]["object"].get("data") or {}
            return patch(("add", "/data", {**data, url[-13]: str(len(data))}))

        self.outgoing.answer = answer
        self.assertEqual(self.config_map()["data"], {"b": "0", "c": "1", "a": "2"})

    def test_reinvocation(self) -> None:
        """One that wants to is called again when another has changed the object after it; once, and not the others."""
        self.configure(
            webhook("a.example.org", reinvocationPolicy="IfNeeded"),
            webhook("b.example.org"),
            webhook("c.example.org", reinvocationPolicy="IfNeeded"),
            mutating=True,
        )

        def answer(url: str, review: Any) -> Any:
            data = review["request"]["object"].get("data") or {}
            name = url[-13]
            return (
                patch(("add", "/data", {**data, name: str(int(data.get(name, "0")) + 1)}))
                if name != "c"
                else {"allowed": True}
            )

        self.outgoing.answer = answer
        self.assertEqual(self.config_map()["data"], {"a": "2", "b": "1"})
        self.assertEqual([url[-13] for url, _ in self.outgoing.calls], ["a", "b", "c", "a", "c"])

    def test_versions(self) -> None:
        """A change made in one version comes back in the version of the object."""
        versions = rule("horizontalpodautoscalers")
        versions["rules"][0] |= {"apiGroups": ["autoscaling"], "apiVersions": ["v1"]}
        self.configure(webhook(**versions), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("add", "/spec/targetCPUUtilizationPercentage", 70))
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        obj = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
        made = self.ask("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", obj)
        (metric,) = [one for one in made["spec"]["metrics"] if one["resource"]["name"] == "cpu"]
        self.assertEqual(metric["resource"]["target"], {"type": "Utilization", "averageUtilization": 70})

    def test_nothing_to_change(self) -> None:
        """A deletion has nothing that could be changed; an empty patch is none."""
        self.config_map()
        self.configure(webhook(**rule("configmaps")), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("add", "/data", {}))
        expected = (
            'Internal error occurred: admission webhook "a.example.org" attempted to modify the object, which is not '
            "supported for this operation"
        )
        self.assertEqual(self.refused("DELETE", f"{MAPS}/m"), (500, expected))
        self.outgoing.answer = lambda url, review: patch()
        self.ask("DELETE", f"{MAPS}/m")

    def test_bad_patches(self) -> None:
        """A patch that can not be read is a failed call; one that does not fit is an error whatever the policy."""
        self.configure(webhook(failurePolicy="Ignore"), mutating=True)
        bad: dict[str, Any] = {"allowed": True, "patchType": "JSONPatch", "patch": "bm8="}
        self.outgoing.answer = lambda url, review: bad
        self.config_map("undecodable")
        self.outgoing.answer = lambda url, review: {**patch(("add", "/x", 1)), "patchType": "Other"}
        self.config_map("unsupported")
        for operation in (
            ("add", "/a/b/c", 1),
            ("test", "/metadata/name", "z"),
            ("replace", "/data", 3),
            ("replace", "/kind", "Pod"),
        ):
            self.outgoing.answer = lambda url, review, operation=operation: patch(operation)
            code, message = self.refused("POST", MAPS, config_map("m"))
            self.assertEqual((code, message[:25]), (500, "Internal error occurred: "))

    def test_annotations(self) -> None:
        """The audit is told what webhooks say, and what they changed."""
        noted: dict[str, tuple[str, str]] = {}
        self.configure(webhook(), webhook("b.example.org", failurePolicy="Ignore"), mutating=True)

        def answer(url: str, review: Any) -> Any:
            if url.endswith("b.example.org"):
                return CallError("POST", url, "EOF")
            return {**patch(("add", "/data", {"a": "b"})), "auditAnnotations": {"key": "value", "bad key": "x"}}

        self.outgoing.answer = answer
        stores = self.server.stores
        admit = stores.admission.admit

        async def watched(attributes: Any) -> None:
            await admit(attributes)
            noted.update(attributes.annotations or {})

        stores.admission.admit = watched  # type: ignore[method-assign]
        self.config_map()
        self.assertEqual(noted["a.example.org/key"], ("value", "Metadata"))
        self.assertNotIn("a.example.org/bad key", noted)
        prefix = "mutation.webhook.admission.k8s.io/round_0_index_"
        self.assertEqual(noted[f"{prefix}0"][0], '{"configuration":"hooks","webhook":"a.example.org","mutated":true}')
        self.assertEqual(noted[f"{prefix}1"][0], '{"configuration":"hooks","webhook":"b.example.org","mutated":false}')
        self.assertEqual(noted[f"failed-open.{prefix}1"], ("b.example.org", "Metadata"))
        self.assertEqual(
            noted["patch.webhook.admission.k8s.io/round_0_index_0"],
            (
                '{"configuration":"hooks","webhook":"a.example.org","patch":[{"op":"add","path":"/data","value":{"a":"b"}}],'
                '"patchType":"JSONPatch"}',
                "Request",
            ),
        )

    def test_managed_fields(self) -> None:
        """Nonsense among the managed fields is put back as it was, and the client is told."""
        self.configure(webhook(), mutating=True)
        self.outgoing.answer = lambda url, review: patch(
            ("replace", "/metadata/managedFields", [{"operation": "Guess"}])
        )
        answered = self.client.answer("POST", MAPS, config_map("m", a="b"))
        self.assertEqual(answered.code, 201)
        self.assertIn(".metadata.managedFields was in an invalid state after admission", str(answered.headers))
        operations = {entry["operation"] for entry in self.ask("GET", f"{MAPS}/m")["metadata"]["managedFields"]}
        self.assertEqual(operations, {"Update"})


class ConfigurationTests(WebhookTestCase):
    """What configurations may say."""

    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

    def problems(self, **more: Any) -> str:
        """What is wrong with a webhook."""
        code, message = self.refused("POST", self.path, {"metadata": {"name": "bad"}, "webhooks": [webhook(**more)]})
        self.assertEqual(code, 422)
        return message.partition(" is invalid: ")[2]

    def test_resources(self) -> None:
        """Resources of a rule must not say the same twice."""
        field = "webhooks[0].rules[0].resources"
        for resources, text in (
            (
                ("pods/*", "pods/log"),
                f"{field}[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify ",
            ),
            (
                ("*/log", "pods/log"),
                f"{field}[1]: Invalid value: \"pods/log\": if '*/log' is present, must not specify ",
            ),
            (
                ("*/*", "x"),
                f'{field}: Invalid value: ["*/*","x"]: if \'*/*\' is present, must not specify other resources',
            ),
            (
                ("*", "x"),
                f'{field}: Invalid value: ["*","x"]: if \'*\' is present, must not specify other resources without',
            ),
            (("",), f"{field}[0]: Required value"),
        ):
            self.assertIn(text, self.problems(**rule(*resources)))
        self.configure(webhook(**rule("pods", "pods/log", "*/scale", "x/*")))

    def test_versions(self) -> None:
        """One of the versions of reviews must be known, and all must be names of versions."""
        field = "webhooks[0].admissionReviewVersions"
        self.assertIn(
            f'{field}: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
            self.problems(admissionReviewVersions=["v2"]),
        )
        self.assertIn(
            f'{field}[1]: Invalid value: "v1": duplicate version', self.problems(admissionReviewVersions=["v1", "v1"])
        )
        self.assertIn(
            f'{field}[1]: Invalid value: "V 1": a DNS-1035 label must',
            self.problems(admissionReviewVersions=["v1", "V 1"]),
        )

    def test_what_was_there(self) -> None:
        """What a webhook was allowed to say when it was made, it may go on saying."""
        self.configure(webhook(), webhook("b.example.org"))
        store = self.server.stores.get("admissionregistration.k8s.io", "validatingwebhookconfigurations")

        def older(obj: Any) -> Any:
            obj["webhooks"][1]["name"] = "a.example.org"
            for hook in obj["webhooks"]:
                hook.update(sideEffects="Some", admissionReviewVersions=["v0"])
                hook["matchConditions"] = [{"name": "c", "expression": "no longer known"}]
            return obj

        anything = UpdateRules("", lambda obj, old: None, lambda obj, old: ())
        self.successResultOf(store.update(RequestScope(), "hooks", older, UpdateOptions(), anything, patching=True))
        label = {"metadata": {"labels": {"a": "b"}}}
        self.ask("PATCH", f"{self.path}/hooks", label, Content_Type="application/merge-patch+json")
        worse = [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "Many"}]
        code, message = self.refused("PATCH", f"{self.path}/hooks", worse, Content_Type="application/json-patch+json")
        self.assertEqual(code, 422)
        self.assertIn('supported values: "None", "NoneOnDryRun", "Some", "Unknown"', message)
