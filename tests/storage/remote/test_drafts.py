"""Tests for L{kubetwist.storage.remote._drafts}."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Draft
from kubetwist.api.storage import Write
from kubetwist.storage.remote._drafts import decode_draft, encode_draft
from kubetwist.storage.remote._frames import ProtocolError

_START = b'{"kind":"Pod","apiVersion":"v1",'
_texts = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)


def write_of(draft: Draft, end: bytes = b"\n") -> Write:
    """Return the write of a draft."""
    return Write("/r/a", _START + draft.body[1:] + end, 0, attachment=draft)


class DraftTests(SynchronousTestCase):
    """Drafts in other fronts."""

    @given(name=st.text(max_size=8), labels=_texts, fields=_texts)
    def test_same_draft(self, name: str, labels: dict[str, str], fields: dict[str, str]) -> None:
        """A draft has its body, labels and fields."""
        body = orjson.dumps({"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": name}})
        write = write_of(Draft(body, labels, fields))
        assert write.value is not None
        found = decode_draft(encode_draft(write), write.value)
        self.assertEqual((found.body, found.labels, found.fields), (body, labels, fields))

    def test_no_draft(self) -> None:
        """A deletion, another attachment, another format of the value and unusual labels have none."""
        draft = Draft(b'{"metadata":{"name":"a"}}', {}, {})
        unusual = Draft(draft.body, {"a": object()}, {})  # type: ignore[dict-item]
        writes = (
            Write("/r/a", None, 1, attachment=draft),
            Write("/r/a", write_of(draft).value, 1, attachment=object()),
            Write("/r/a", b"k8s:enc:" + draft.body, 1, attachment=draft),
            write_of(draft, b""),
            write_of(unusual),
        )
        self.assertEqual([encode_draft(write) for write in writes], [b""] * 5)

    @given(
        data=st.binary(max_size=20) | st.lists(st.integers(-9, 9) | _texts | st.none(), max_size=4).map(orjson.dumps)
    )
    def test_malformed(self, data: bytes) -> None:
        """Data that do not describe a draft of the value are refused."""
        with self.assertRaises(ProtocolError):
            decode_draft(data, b'{"kind":"Pod","metadata":{}}\n')
