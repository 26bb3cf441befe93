"""Tests for L{kubetwist.admission_plugins.policies.params}."""

from __future__ import annotations

from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase


class ParamTests(PolicyTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.params}."""

    def test_params(self) -> None:
        """A binding refers to a parameter object; if there is none, parameterNotFoundAction decides."""
        validation = {"expression": "object.data.size() <= int(params.data.most)", "message": "too many"}
        ref = {"name": "limits", "parameterNotFoundAction": "Deny"}
        self.policy(
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            matchConditions=[{"name": "others", "expression": "object.metadata.name != 'limits'"}],
            validations=[validation],
            binding={"paramRef": ref},
        )
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}, "data": {"x": ""}})
        self.assertIn(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            message,
        )
        self.send_request("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p-b")
        self.create("limits", {"most": "1"})
        self.bind(paramRef=ref)
        self.create("a", {"x": ""})
        self.request_error("POST", MAPS, {"metadata": {"name": "b"}, "data": {"x": "", "y": ""}})
        patch = {"data": {"most": "2"}}
        self.send_request("PATCH", f"{MAPS}/limits", patch, Content_Type="application/merge-patch+json")
        self.create("b", {"x": "", "y": ""})

    def test_params_by_selector(self) -> None:
        """The policy is evaluated for each parameter that matches the selector."""
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
            self.request_error("POST", MAPS, {"metadata": {"name": name}})

    def test_unknown_kind_of_params(self) -> None:
        """An unknown kind of parameters is reported when the policy is evaluated."""
        self.policy(
            paramKind={"apiVersion": "example.com/v1", "kind": "Limit"},
            validations=[{"expression": "true"}],
            binding={"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}},
        )
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn(
            "'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: "
            "'example.com/v1, Kind=Limit'",
            message,
        )
