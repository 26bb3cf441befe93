"""Tests for L{kubetwist.testing.recording.masking}."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.recording.masking import LAST_APPLIED, MASK, mask_object, mask_text, masked_by

MASKED = b64encode(MASK.encode()).decode()
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLXRva2Vu"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIFakeFake\n-----END EC PRIVATE KEY-----\n"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from([TOKEN, KEY, "password: abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=15,
)


def secret(**fields: Any) -> dict[str, Any]:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, **fields}


class MaskObjectTests(SynchronousTestCase):
    """Tests for L{mask_object}."""

    @given(st.dictionaries(st.text(max_size=10), st.binary(min_size=1, max_size=40), max_size=4))
    def test_secret(self, values: dict[str, bytes]) -> None:
        """All data of a Secret are replaced, under their keys, with any content."""
        data = {key: b64encode(value).decode() for key, value in values.items()}
        masked = mask_object(secret(data=data, stringData=dict.fromkeys(values, "plain")))
        parsed = {".dockerconfigjson", ".dockercfg"}
        self.assertEqual(list(masked["data"]), list(data))
        self.assertEqual({masked["data"][key] for key in data if key not in parsed} - {MASKED}, set())
        self.assertEqual({masked["stringData"][key] for key in data if key not in parsed} - {MASK}, set())

    def test_parsed_data(self) -> None:
        """Data that the server parses stay valid."""
        masked = mask_object(secret(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "e30="}))
        self.assertEqual(masked["data"][".dockerconfigjson"], b64encode(b'{"auths":{}}').decode())

    def test_last_applied(self) -> None:
        """The annotation of kubectl apply is masked like the object; one that cannot be parsed is removed."""
        applied = json.dumps(secret(data={"k": "aGVsbG8="}))
        masked = mask_object(secret(metadata={"name": "mine", "annotations": {LAST_APPLIED: applied, "other": "x"}}))
        self.assertEqual(json.loads(masked["metadata"]["annotations"][LAST_APPLIED])["data"], {"k": MASKED})
        self.assertEqual(masked["metadata"]["annotations"]["other"], "x")
        for broken in ("{", "[]", '"hello"'):
            obj = secret(metadata={"name": "mine", "annotations": {LAST_APPLIED: broken}})
            self.assertEqual(mask_object(obj)["metadata"]["annotations"], {})

    def test_environment(self) -> None:
        """Values of variables that are named like secrets are replaced, and no other ones."""
        variables = [
            {"name": "DB_PASSWORD", "value": "hunter2"},
            {"name": "API_KEY", "value": "k"},
            {"name": "LEVEL", "value": "debug"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
        ]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [{"env": variables}]}}
        found = mask_object(pod)["spec"]["containers"][0]["env"]
        self.assertEqual([one.get("value") for one in found], [MASK, MASK, "debug", None])
        self.assertEqual(found[3], variables[3])

    @given(json_values)
    def test_idempotent(self, value: Any) -> None:
        """Masking a masked object changes nothing, and the original is not changed."""
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": value}
        before = json.dumps(obj)
        masked = mask_object(obj)
        self.assertEqual(mask_object(masked), masked)
        self.assertEqual(json.dumps(obj), before)

    @given(json_values)
    def test_no_token(self, value: Any) -> None:
        """No token or private key is left anywhere."""
        text = json.dumps(mask_object({"kind": "ConfigMap", "metadata": {}, "data": value}))
        self.assertNotIn(TOKEN.partition(".")[2], text)
        self.assertNotIn("MHcCAQEE", text)


class MaskTextTests(SynchronousTestCase):
    """Tests for L{mask_text}."""

    def test_masked(self) -> None:
        """Credentials are replaced in plain texts, kubeconfigs and base64."""
        for text, expected in (
            (f"token is {TOKEN}!", "token is masked!"),
            (KEY, "-----BEGIN EC PRIVATE KEY-----\nmasked\n-----END EC PRIVATE KEY-----\n"),
            ("-----BEGIN PRIVATE KEY-----\ncut off", "-----BEGIN PRIVATE KEY-----\nmasked\n-----END PRIVATE KEY-----"),
            ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "Authorization: Bearer masked"),
            ("user:\n  token: abc\n  name: x", "user:\n  token: masked\n  name: x"),
            ('{"client-key-data":"abc","a":1}', '{"client-key-data":"masked","a":1}'),
            (b64encode(KEY.encode()).decode(), b64encode(mask_text(KEY).encode()).decode()),
        ):
            self.assertEqual(mask_text(text), expected)

    def test_kept(self) -> None:
        """Other texts stay the same."""
        for text in (
            "",
            "Basic authentication is disabled",
            "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n",
            "a" * 64,
            b64encode(bytes(range(256))).decode(),
            "tokens are read from a file",
        ):
            self.assertEqual(mask_text(text), text)


class MaskedByTests(SynchronousTestCase):
    """Tests for L{masked_by}."""

    def test_rules(self) -> None:
        """Rules see the masked object, may change it, and may leave it out."""
        seen = []

        def rule(obj: Any) -> object:
            seen.append(obj["data"]["k"])
            obj["data"]["more"] = "x"
            return obj["metadata"]["name"] != "hidden"

        self.assertEqual(masked_by([rule], secret(data={"k": "aGVsbG8="}))["data"], {"k": MASKED, "more": "x"})
        self.assertIsNone(masked_by([rule], secret(metadata={"name": "hidden"}, data={"k": "aGVsbG8="})))
        self.assertEqual(seen, [MASKED, MASKED])
