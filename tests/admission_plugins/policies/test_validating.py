"""Tests for L{kubetwist.admission_plugins.policies}, over HTTP in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission.expressions import _in_other_thread
from kubetwist.admission_plugins.configurations import InvalidConfiguration
from kubetwist.admission_plugins.policies.mutating import MutatingAdmissionPolicy
from kubetwist.admission_plugins.policies.validating import ValidatingAdmissionPolicy
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from tests.admission_plugins.fakes import starting_over
from tests.resources.server import Server, definitions

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"


def rule(*resources: str, **more: Any) -> dict[str, Any]:
    """A rule for the creation and update of resources."""
    return {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": [*resources],
        **more,
    }


class PolicyTestCase(SynchronousTestCase):
    """A test of policies."""

    def setUp(self) -> None:
        """A server with both plugins."""
        self.server = Server(
            "configmaps",
            "namespaces",
            "pods",
            "secrets",
            "horizontalpodautoscalers",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        )
        stores = self.server.stores
        stores.definitions = definitions()
        stores.authorizer = self.server.authorizer
        plugins = [plugin.configured(stores, None) for plugin in (MutatingAdmissionPolicy, ValidatingAdmissionPolicy)]
        stores.use(AdmissionChain(plugins, self.server.clock))
        self.client = self.server.client()
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default", "labels": {"team": "a"}}})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """What is answered to a request that succeeds."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer

    def refused(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, str]:
        """The code, reason and message of one that fails."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertGreaterEqual(code, 400, answer)
        return code, answer["reason"], answer["message"]

    def policy(self, kind: str = "validating", name: str = "p", binding: Any = (), **spec: Any) -> None:
        """Make a policy, and unless C{binding} is L{None} bind it."""
        spec.setdefault("matchConstraints", {"resourceRules": [rule("configmaps")]})
        if kind == "mutating":
            spec.setdefault("reinvocationPolicy", "Never")
        self.ask("POST", f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": spec})
        if binding is not None:
            self.bind(kind, name, **dict(binding))

    def bind(self, kind: str = "validating", name: str = "p", **spec: Any) -> None:
        """Bind a policy."""
        if kind == "validating":
            spec.setdefault("validationActions", ["Deny"])
        body = {"metadata": {"name": spec.pop("called", f"{name}-b")}, "spec": {"policyName": name, **spec}}
        self.ask("POST", f"{GROUP}/{kind}admissionpolicybindings", body)

    def create(self, name: str = "m", data: Any = None, **meta: Any) -> Any:
        """Create a config map."""
        return self.ask("POST", MAPS, {"metadata": {"name": name, **meta}, "data": data or {}})


class ValidatingTests(PolicyTestCase):
    """Tests for L{ValidatingAdmissionPolicy}."""

    def test_denial(self) -> None:
        """What a validation does not accept is refused, with its message, and the reason it gives."""
        self.policy(
            variables=[{"name": "size", "expression": "object.?data.orValue({}).size()"}],
            validations=[
                {"expression": "variables.size < 3", "messageExpression": "'has ' + string(variables.size)"},
                {"expression": "!('no' in object.?data.orValue({}))", "message": "never", "reason": "Forbidden"},
                {"expression": "object.metadata.name != 'x'"},
            ],
        )
        self.create("ok", {"a": "1"})
        said = "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request:"
        self.assertEqual(
            self.refused("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "", "b": "", "c": ""}}),
            (422, "Invalid", f'configmaps "m" is forbidden: {said} has 3'),
        )
        self.assertEqual(
            self.refused("POST", MAPS, {"metadata": {"name": "m"}, "data": {"no": ""}}),
            (403, "Forbidden", f'configmaps "m" is forbidden: {said} never'),
        )
        _, answer = self.client.ask("POST", MAPS, {"metadata": {"name": "x"}})
        self.assertEqual(
            answer["details"]["causes"], [{"message": f"{said} failed expression: object.metadata.name != 'x'"}]
        )

    def test_lost_place(self) -> None:
        """While caches start over, what they had goes on to hold, be it nothing; then what they have become does."""
        caches = [store.cache for store in self.server.stores if "admissionpolic" in store.cache.prefix]
        self.assertEqual(len(caches), 4)
        self.create("a")
        with starting_over(self.server, caches):
            self.create("b")
        self.policy(validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "c"}})
        with starting_over(self.server, caches):
            self.refused("POST", MAPS, {"metadata": {"name": "c"}})
        self.refused("POST", MAPS, {"metadata": {"name": "c"}})

    def test_without_binding(self) -> None:
        """A policy that is not bound does nothing; one that is bound no more, neither."""
        self.policy(validations=[{"expression": "false"}], binding=None)
        self.create("a")
        self.bind()
        self.refused("POST", MAPS, {"metadata": {"name": "b"}})
        self.ask("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p-b")
        self.create("b")

    def test_changed_policy(self) -> None:
        """A change of a policy holds for the next request."""
        self.policy(validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        patch = {"spec": {"validations": [{"expression": "true"}]}}
        path = f"{GROUP}/validatingadmissionpolicies/p"
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_old_object(self) -> None:
        """An update is seen with what it replaces; a deletion has nothing but that."""
        everything = {**rule("configmaps"), "operations": ["*"]}
        self.policy(
            matchConstraints={"resourceRules": [everything]},
            validations=[
                {
                    "expression": "request.operation == 'CREATE' ? oldObject == null : "
                    "request.operation == 'UPDATE' ? object.data == oldObject.data : "
                    "object == null && oldObject.metadata.name != 'keep'"
                }
            ],
        )
        self.create("keep", {"a": "1"})
        content = {"Content_Type": "application/merge-patch+json"}
        self.ask("PATCH", f"{MAPS}/keep", {"metadata": {"labels": {"x": "y"}}}, **content)
        self.refused("PATCH", f"{MAPS}/keep", {"data": {"a": "2"}}, **content)
        self.refused("DELETE", f"{MAPS}/keep")
        self.create("go")
        self.ask("DELETE", f"{MAPS}/go")

    def test_selection(self) -> None:
        """Rules, names, exclusions and selectors of policy and binding all have to match."""
        constraints = {
            "resourceRules": [rule("configmaps", "secrets")],
            "excludeResourceRules": [rule("configmaps", resourceNames=["free"])],
            "objectSelector": {"matchLabels": {"watched": "yes"}},
        }
        resources = {"resourceRules": [rule("configmaps")], "namespaceSelector": {"matchLabels": {"team": "a"}}}
        self.policy(
            matchConstraints=constraints,
            validations=[{"expression": "false"}],
            binding={"matchResources": resources},
        )
        watched = {"watched": "yes"}
        self.create("free", labels=watched)
        self.create("plain")
        self.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s", "labels": watched}})
        self.refused("POST", MAPS, {"metadata": {"name": "m", "labels": watched}})
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        self.ask("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "m", "labels": watched}})

    def test_conditions(self) -> None:
        """A policy is not asked when a condition does not hold; one that can not be told denies, or is ignored."""
        conditions = [
            {"name": "named", "expression": "object.metadata.name.startsWith('a')"},
            {"name": "labelled", "expression": "object.metadata.labels['k'] == 'v'"},
        ]
        self.policy(matchConditions=conditions, validations=[{"expression": "false", "message": "no"}])
        self.create("b")
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("expression 'object.metadata.labels['k'] == 'v'' resulted in error: no such key: labels", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_failure_policy(self) -> None:
        """An expression that can not be evaluated denies, or with failurePolicy Ignore does not."""
        self.policy(validations=[{"expression": "object.nothere == 1"}])
        code, reason, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual((code, reason), (422, "Invalid"))
        self.assertIn("expression 'object.nothere == 1' resulted in error: no such key: nothere", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_warnings(self) -> None:
        """The action Warn tells the client, and lets the request pass."""
        self.policy(validations=[{"expression": "false", "message": "hm"}], binding={"validationActions": ["Warn"]})
        answer = self.client.answer("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(answer.code, 201)
        self.assertIn(
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': hm",
            answer.headers["warning"][0],
        )

    def test_params(self) -> None:
        """A binding gives its policy an object; without it, the binding says what happens."""
        validation = {"expression": "object.data.size() <= int(params.data.most)", "message": "too many"}
        ref = {"name": "limits", "parameterNotFoundAction": "Deny"}
        self.policy(
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            matchConditions=[{"name": "others", "expression": "object.metadata.name != 'limits'"}],
            validations=[validation],
            binding={"paramRef": ref},
        )
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": ""}})
        self.assertIn(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            message,
        )
        self.ask("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p-b")
        self.create("limits", {"most": "1"})
        self.bind(paramRef=ref)
        self.create("a", {"x": ""})
        self.refused("POST", MAPS, {"metadata": {"name": "b"}, "data": {"x": "", "y": ""}})
        patch = {"data": {"most": "2"}}
        self.ask("PATCH", f"{MAPS}/limits", patch, Content_Type="application/merge-patch+json")
        self.create("b", {"x": "", "y": ""})

    def test_params_by_selector(self) -> None:
        """Each object that a selector finds is a parameter of its own."""
        for name in ("one", "two"):
            self.create(name, {"banned": name}, labels={"params": "yes"})
        selector = {"matchLabels": {"params": "yes"}}
        self.policy(
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            validations=[{"expression": "object.metadata.name != params.data.banned + 's'"}],
            binding={"paramRef": {"selector": selector, "parameterNotFoundAction": "Allow"}},
        )
        self.create("three")
        for name in ("ones", "twos"):
            self.refused("POST", MAPS, {"metadata": {"name": name}})

    def test_unknown_kind_of_params(self) -> None:
        """Parameters of a kind that nobody knows are told, where the policy is asked."""
        self.policy(
            paramKind={"apiVersion": "example.com/v1", "kind": "Limit"},
            validations=[{"expression": "true"}],
            binding={"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}},
        )
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn(
            "'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: "
            "'example.com/v1, Kind=Limit'",
            message,
        )

    def test_versions(self) -> None:
        """A rule for another version of a resource matches, and sees objects in that version."""
        rules = [rule("horizontalpodautoscalers", apiGroups=["autoscaling"], apiVersions=["v2"])]
        self.policy(
            matchConstraints={"resourceRules": rules},
            validations=[
                {
                    "expression": "object.apiVersion == 'autoscaling/v2'"
                    " && object.spec.metrics[0].resource.target.averageUtilization == 80"
                }
            ],
        )
        spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        self.ask("POST", SCALERS, {"metadata": {"name": "a"}, "spec": {**spec}})
        spec["targetCPUUtilizationPercentage"] = 50
        self.refused("POST", SCALERS, {"metadata": {"name": "b"}, "spec": spec})

    def test_authorizer(self) -> None:
        """Expressions ask what the user may do, also when the answer takes its time."""
        pending: list[Deferred[Verdict]] = []

        def authorize(question: AuthorizerAttributes) -> Any:
            if question.verb != "approve":
                return Verdict(Decision.ALLOW)
            pending.append(Deferred())
            return pending[-1]

        self.server.stores.authorizer.authorize = authorize  # type: ignore[union-attr, method-assign]
        self.policy(
            validations=[
                {"expression": "authorizer.requestResource.check('approve').allowed()", "message": "ask first"}
            ]
        )
        for decision, code in ((Decision.ALLOW, b" 201 "), (Decision.NO_OPINION, b" 422 ")):
            client = self.server.client()
            body = b'{"metadata":{"generateName":"a"}}'
            head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            self.assertEqual(client.taken(), b"")
            pending.pop().callback(Verdict(decision))
            self.server.clock.advance(0)
            self.assertIn(code, client.taken().partition(b"\r\n")[0])
        self.assertEqual(pending, [])

    def test_budget(self) -> None:
        """A policy that costs too much denies, and nobody waits for it (CEL bombs)."""
        listed = "object.data.map(k, k)"
        bomb = f"{listed}.all(a, {listed}.all(b, {listed}.all(c, a + b + c != 'x')))"
        self.policy(validations=[{"expression": bomb}])
        data = {f"k{number}": "" for number in range(200)}
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}, "data": data})
        self.assertIn("operation cancelled: actual cost limit exceeded", message)

    def test_costly(self) -> None:
        """A policy with expensive expressions is evaluated in a thread, with the same verdict."""
        threads = self.server.done_in_threads
        listed = "object.data.map(k, k)"
        self.policy(validations=[{"expression": f"{listed}.all(a, {listed}.all(b, a != 'no'))"}])
        for size, wanted in ((3, []), (100, ["_elsewhere"])):
            threads.clear()
            data = {f"k{number}": "" for number in range(size)}
            self.create(f"ok{size}", data)
            self.refused("POST", MAPS, {"metadata": {"name": f"no{size}"}, "data": {**data, "no": ""}})
            self.assertEqual([function.__name__ for function in threads], wanted * 2)

    def test_authorizer_of_costly(self) -> None:
        """Authorizers are never called from a thread: the evaluation waits until the reactor has called them."""
        asked: list[bool] = []
        in_thread: list[bool] = []
        outer = self.server.done_in_threads

        def authorize(question: AuthorizerAttributes) -> Any:
            if question.verb == "approve":
                asked.append(_in_other_thread.get())
            return Verdict(Decision.ALLOW)

        self.server.stores.authorizer.authorize = authorize  # type: ignore[union-attr, method-assign]
        listed = "object.data.map(k, k)"
        costly = f"{listed}.all(a, {listed}.all(b, a != 'no'))"
        approved = "authorizer.requestResource.check('approve').allowed()"
        self.policy(validations=[{"expression": f"{costly} && {approved}"}])
        outer.clear()
        self.create("a", {f"k{number}": "" for number in range(100)})
        in_thread = [function.__name__ == "_elsewhere" for function in outer]
        # The first evaluation in the thread needs the decision, the second one has it.
        self.assertEqual((in_thread, asked), ([True, True], [False]))

    def test_variables_are_lazy(self) -> None:
        """A variable is computed when it is named, and once."""
        self.policy(
            variables=[{"name": "broken", "expression": "object.nothere"}, {"name": "n", "expression": "1 + 1"}],
            validations=[{"expression": "variables.n == 2 || variables.broken == 1"}],
        )
        self.create("a")

    def test_configuration_is_exempt(self) -> None:
        """A policy can not lock everybody out of changing policies."""
        everything = {**rule("*"), "operations": ["*"]}
        self.policy(matchConstraints={"resourceRules": [everything]}, validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.ask("DELETE", f"{GROUP}/validatingadmissionpolicies/p")
        self.create("a")


class MutatingTests(PolicyTestCase):
    """Tests for L{MutatingAdmissionPolicy}."""

    def mutate(self, *mutations: dict[str, Any], **spec: Any) -> None:
        """Make a policy that does these."""
        self.policy("mutating", mutations=[*mutations], **spec)

    def apply(self, expression: str) -> dict[str, Any]:
        """A mutation that merges."""
        return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}

    def patch(self, expression: str) -> dict[str, Any]:
        """A mutation that edits."""
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

    def test_both(self) -> None:
        """Mutations are carried out in order, each on what those before have made."""
        self.mutate(
            self.apply("Object{metadata: Object.metadata{labels: {'by': variables.who}}}"),
            self.patch(
                "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a.b'),"
                " value: object.metadata.labels['by']}]"
            ),
            variables=[{"name": "who", "expression": "request.userInfo.username"}],
        )
        made = self.create("a", {"k": "v"}, labels={"x": "y"})
        self.assertEqual(made["metadata"]["labels"], {"x": "y", "by": "admin"})
        self.assertEqual(made["data"], {"k": "v", "a.b": "admin"})

    def test_twice(self) -> None:
        """A policy that is run on its own result changes nothing more."""
        self.mutate(self.apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"), reinvocationPolicy="IfNeeded")
        self.create("a")
        before = self.ask("GET", f"{MAPS}/a")
        after = self.ask("PUT", f"{MAPS}/a", before)
        self.assertEqual(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"])

    def test_reinvocation(self) -> None:
        """A policy that wants to see later changes sees them."""
        self.policy(
            "mutating",
            "first",
            mutations=[
                self.apply(
                    "Object{metadata: Object.metadata{annotations:"
                    " {'seen': object.?metadata.labels.?late.orValue('no')}}}"
                )
            ],
            reinvocationPolicy="IfNeeded",
        )
        self.policy(
            "mutating", "second", mutations=[self.apply("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}")]
        )
        self.assertEqual(self.create("a")["metadata"]["annotations"], {"seen": "yes"})

    def test_list_items(self) -> None:
        """Items of a list with keys are merged by these, and what they lack is filled in."""
        constraints = {"resourceRules": [rule("pods")]}
        self.mutate(
            self.apply(
                "Object{spec: Object.spec{containers: object.spec.containers.map(c, "
                "Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}"
            ),
            matchConstraints=constraints,
        )
        containers = [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]
        pod = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
        made = self.ask("POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual(
            [(one["name"], one["image"], one["imagePullPolicy"]) for one in made["spec"]["containers"]],
            [("a", "a:1", "Always"), ("b", "b:1", "Always")],
        )

    def test_atomic(self) -> None:
        """What can only be replaced as a whole is not merged."""
        self.mutate(
            self.apply("Object{spec: Object.spec{nodeSelector: {'a': 'b'}, hostAliases: []}}"),
            self.apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', command: ['x']}]}}"),
            matchConstraints={"resourceRules": [rule("pods")]},
        )
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        code, reason, message = self.refused("POST", "/api/v1/namespaces/default/pods", pod)
        self.assertEqual((code, reason), (403, "Invalid"))
        self.assertIn("may not mutate atomic arrays, maps or structs: .spec.nodeSelector", message)

    def test_wrong_field(self) -> None:
        """A field that the kind does not have is refused, and so is an object of another type's name."""
        self.mutate(self.apply("Object{nothere: 'x'}"))
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("error applying patch: failed to convert patch object to typed object: .nothere", message)
        self.policy("mutating", "q", mutations=[self.apply("Object{metadata: Object.spec{labels: {'a': 'b'}}}")])
        self.ask("DELETE", f"{GROUP}/mutatingadmissionpolicies/p")
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn('type mismatch: unexpected type name "Object.spec", expected "Object.metadata"', message)

    def test_patch_that_does_not_apply(self) -> None:
        """A JSON patch that does not apply is refused; one whose test fails is not for this object."""
        self.mutate(
            self.patch(
                "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, JSONPatch{op: 'remove', path: '/data/gone'}]"
            )
        )
        self.assertEqual(self.create("a", {"k": "other"})["data"], {"k": "other"})
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "b"}, "data": {"k": "v"}})
        self.assertEqual(
            message,
            "policy 'p' with binding 'p-b' denied request: JSON Patch: error in remove for path: '/data/gone': Unable "
            "to remove nonexistent key: gone: missing value",
        )

    def test_failure_policy(self) -> None:
        """With failurePolicy Ignore a mutation that fails is left out."""
        self.mutate(
            self.patch("[JSONPatch{op: 'remove', path: '/data/gone'}]"),
            self.apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"),
            failurePolicy="Ignore",
        )
        self.assertEqual(self.create("a", {"k": "v"})["metadata"]["labels"], {"a": "b"})

    def test_result_is_no_object_of_its_kind(self) -> None:
        """A patch that makes something else of an object is refused without a trace of it."""
        self.mutate(self.patch("[JSONPatch{op: 'replace', path: '/data', value: [1]}]"))
        code, _, _ = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 500)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[0], 404)

    def test_validated_afterwards(self) -> None:
        """What policies make of an object is seen by those that validate, and by the kind's own rules."""
        self.mutate(self.apply("Object{metadata: Object.metadata{labels: {'bad label': 'x'}}}"))
        code, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 422)
        self.assertIn("metadata.labels", message)


class ManifestTests(PolicyTestCase):
    """Policies from files."""

    def configured(self, **files: str) -> None:
        """Start over with a directory of manifests."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        configuration = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyConfiguration",
            "staticManifestsDir": str(folder),
        }
        stores = self.server.stores
        plugin = ValidatingAdmissionPolicy.configured(stores, configuration)
        stores.use(AdmissionChain([plugin], self.server.clock))

    def bad(self, **files: str) -> str:
        """Why a directory is refused."""
        return str(self.assertRaises(InvalidConfiguration, self.configured, **files))

    def test_before_everything(self) -> None:
        """A policy of a file is active without anything in the API, and nothing in the API ends it."""
        self.configured(both=MANIFESTS)
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("'deny.static.k8s.io' with binding 'deny-b.static.k8s.io' denied request: by file", message)
        path = f"{GROUP}/validatingadmissionpolicies/deny.static.k8s.io"
        self.assertEqual(self.client.ask("DELETE", path)[0], 404)
        self.policy(name="deny.static.k8s.io", validations=[{"expression": "true"}], binding=None)
        self.ask("DELETE", path)
        self.refused("POST", MAPS, {"metadata": {"name": "a"}})

    def test_mistakes(self) -> None:
        """What can not be used stops the start, with the file and the reason."""
        self.assertIn(
            'must have a name ending with ".static.k8s.io"', self.bad(a=MANIFESTS.replace("deny.static", "deny"))
        )
        self.assertIn("duplicate name", self.bad(a=MANIFESTS, b=MANIFESTS))
        self.assertIn("which does not exist in the manifest directory", self.bad(a=MANIFESTS.partition("---")[2]))
        self.assertIn("unsupported resource type ConfigMap", self.bad(a="apiVersion: v1\nkind: ConfigMap\n"))
        self.assertIn("unknown field", self.bad(a=MANIFESTS.replace("validations:", "validation:")))
        self.assertIn("compilation failed", self.bad(a=MANIFESTS.replace('"false"', '"false &&"')))
        self.assertIn("error loading", self.bad(a="a: [1\n"))


#: A policy that denies every config map, and its binding.
MANIFESTS = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deny.static.k8s.io}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "false", message: by file}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deny-b.static.k8s.io}
spec: {policyName: deny.static.k8s.io, validationActions: [Deny]}
"""


class ValidationTests(PolicyTestCase):
    """Policies that can not be are refused."""

    def wrong(self, kind: str, **spec: Any) -> list[str]:
        """The causes of a policy's refusal."""
        spec.setdefault("matchConstraints", {"resourceRules": [rule("configmaps")]})
        if kind == "mutating":
            spec.setdefault("reinvocationPolicy", "Never")
        body = {"metadata": {"name": "p"}, "spec": spec}
        code, answer = self.client.ask("POST", f"{GROUP}/{kind}admissionpolicies", body)
        self.assertEqual(code, 422, answer)
        return [f"{one['field']}: {one['message']}" for one in answer["details"]["causes"]]

    def test_expressions(self) -> None:
        """Expressions that do not compile, or give the wrong type, are told with the place in them."""
        (found,) = self.wrong("validating", validations=[{"expression": "object.x =="}])
        self.assertIn('spec.validations[0].expression: Invalid value: "object.x ==": compilation failed: ERROR', found)
        self.assertEqual(
            self.wrong("validating", validations=[{"expression": "1"}]),
            ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
        )
        (found,) = self.wrong("validating", validations=[{"expression": "true", "messageExpression": "authorizer"}])
        self.assertIn("undeclared reference to 'authorizer'", found)

    def test_mutations(self) -> None:
        """A mutation is of one type, and its expression gives that."""
        self.assertEqual(
            self.wrong(
                "mutating",
                mutations=[
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "1"}},
                    {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
                    {"patchType": "Other"},
                ],
            ),
            [
                'spec.mutations[0].jsonPatch.expression: Invalid value: "1": must evaluate to list(JSONPatch) but got '
                "int",
                "spec.mutations[1].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                'spec.mutations[1].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified '
                "when patchType is JSONPatch",
                'spec.mutations[2].patchType: Unsupported value: "Other": supported values: "ApplyConfiguration", '
                '"JSONPatch"',
            ],
        )

    def test_deletion_can_not_be_mutated(self) -> None:
        """A mutating policy is not for deletions."""
        (found,) = self.wrong(
            "mutating",
            matchConstraints={"resourceRules": [{**rule("configmaps"), "operations": ["DELETE"]}]},
            mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        )
        self.assertIn('resourceRules.operations: Unsupported value: "DELETE"', found)
