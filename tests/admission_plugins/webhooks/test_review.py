"""Tests for L{kubetwist.admission_plugins.webhooks.review}."""

from __future__ import annotations

import base64
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.matching.equivalents import EquivalentResource
from kubetwist.admission_plugins.webhooks.review import (
    InvalidAdmissionResponse,
    decode_response,
    encode_review,
    to_status_error,
)
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import UserInfo
from kubetwist.testing.admission import write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


RESPONSES = st.fixed_dictionaries(
    {},
    optional={
        "uid": st.just("u") | JSON,
        "allowed": st.booleans() | JSON,
        "status": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("code", "reason", "message", "details", "status"), JSON)
        )
        | JSON,
        "patch": st.sampled_from(["W10=", "no", ""]) | JSON,
        "patchType": st.just("JSONPatch") | JSON,
        "auditAnnotations": st.dictionaries(st.text(max_size=3), JSON, max_size=2) | JSON,
        "warnings": st.lists(JSON, max_size=2) | JSON,
    },
)


def review(response: Any, version: str = "v1") -> bytes:
    """Return a response."""
    return orjson.dumps({"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "response": response})


class AnswerTests(SynchronousTestCase):
    """Tests for L{decode_response}."""

    @given(RESPONSES | JSON, st.sampled_from(["v1", "v1beta1"]), st.booleans())
    def test_anything(self, response: Any, version: str, mutating: bool) -> None:
        """Any JSON is a response or a failed call; the status of a denial is a valid error."""
        try:
            result = decode_response(review(response, version), version, "u", mutating)
        except (ValueError, InvalidAdmissionResponse):
            return
        error = to_status_error("a.example.org", result.status)
        self.assertTrue(400 <= error.code < 600)
        orjson.dumps(error.status())

    @given(st.binary(max_size=30))
    def test_bytes(self, data: bytes) -> None:
        """Any bytes are a response or a failed call."""
        with self.assertRaises((ValueError, InvalidAdmissionResponse)):
            decode_response(data, "v1", "u", True)

    def test_deep(self) -> None:
        """A deeply nested review is rejected."""
        with self.assertRaises(ValueError):
            decode_response(b'{"response":' * 100_000, "v1", "u", True)

    def test_patches(self) -> None:
        """In v1 a patch requires its type and vice versa; v1beta1 ignores the type."""
        patch = base64.b64encode(b"[]").decode()
        for response, text in (
            ({"patch": patch}, "webhook returned response.patch but not response.patchType"),
            ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
            ({"patch": patch, "patchType": ""}, 'webhook returned invalid response.patchType of ""'),
        ):
            with self.assertRaises(InvalidAdmissionResponse) as caught:
                decode_response(review({"uid": "u", "allowed": True, **response}), "v1", "u", True)
            self.assertEqual(str(caught.exception), text)
        result = decode_response(review({"patch": patch}, "v1beta1"), "v1beta1", "u", True)
        self.assertEqual((result.patch, result.patch_type), (b"[]", "JSONPatch"))
        with self.assertRaises(InvalidAdmissionResponse) as caught:
            decode_response(review({"uid": "u", "patchType": "JSONPatch"}), "v1", "u", False)
        self.assertEqual(str(caught.exception), "validating webhook may not return response.patchType")

    def test_versions(self) -> None:
        """A response in another version than the request is rejected."""
        with self.assertRaisesRegex(ValueError, "unknown conversion"):
            decode_response(review({"uid": "u"}, "v1beta1"), "v1", "u", True)


class QuestionTests(SynchronousTestCase):
    """Tests for L{encode_review}."""

    def test_frozen(self) -> None:
        """A frozen old object can be encoded."""
        user = UserInfo("alice", "1", ("g",), {"k": ("v",)})
        old = frozen({"metadata": {"name": "a"}})
        attributes = write(None, operation="DELETE", old=old, user=user)
        equivalent = EquivalentResource(attributes.request_resource, attributes.request_kind)
        fragment = orjson.Fragment(orjson.dumps(attributes.old_object))
        body = orjson.loads(encode_review("v1", "u", attributes, equivalent, orjson.Fragment(b"null"), fragment))
        request = body["request"]
        self.assertEqual((request["oldObject"], request["object"]), ({"metadata": {"name": "a"}}, None))
        expected = {"username": "alice", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}
        self.assertEqual(request["userInfo"], expected)
