"""Tests for L{kubetwist.api.formats}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.formats import FORMATS, is_recognized

EXAMPLES = {
    "datetime": (
        ["2024-02-03T04:05:06Z", "2024-02-03t04:05:06.5+01:00"],
        ["yesterday", "2024-02-03", "2024-02-30T00:00:00Z"],
    ),
    "date": (["2024-02-29"], ["2023-02-29", "3 Feb 2024", "2024-2-3"]),
    "duration": (["3h", "1h30m", "5 days", "2 wk"], ["soon", ""]),
    "ipv4": (["10.0.9.1"], ["10.1.1.300", "::1", "1.2.3"]),
    "ipv6": (["fd00::1", "::"], ["10.0.0.1", "fd00::g"]),
    "cidr": (["10.1.0.0/16", "fd00::/8"], ["10.1.0.0", "10.1.0.0/33"]),
    "uuid": (["123E4567-e89b-12d3-a456-426614174000"], ["not-a-uuid"]),
    "byte": (["aGk="], ["!!", "", "aGk"]),
    "email": (["a@b.example"], ["nobody", "a b@c"]),
    "hostname": (["h.example.com", "h"], ["no spaces allowed", "-a", "a..b"]),
    "k8sshortname": (["a-b"], ["Not_Short", "a" * 64]),
    "mac": (["00:11:22:33:44:55", "0123456789Ab"], ["00:11:22:33:44", "0123456789ab0", "00:11-22:33:44:55"]),
    "uri": (["https://example.com/x", "/x"], ["x", "", "http://a:b"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112"]),
    "isbn13": (["978-0321751041"], ["978-0321751042"]),
    "rgbcolor": (["rgb(1, 2, 255)"], ["rgb(1,2,256)"]),
}


class FormatTests(SynchronousTestCase):
    """Tests for formats of strings."""

    def test_examples(self) -> None:
        """Valid texts of a format are accepted, and invalid ones rejected."""
        for name, (good, bad) in EXAMPLES.items():
            for text in good:
                self.assertTrue(FORMATS[name](text), (name, text))
            for text in bad:
                self.assertFalse(FORMATS[name](text), (name, text))

    def test_recognized(self) -> None:
        """Formats belong to types, and dashes in their names are ignored."""
        self.assertTrue(is_recognized("string", "date-time"))
        self.assertTrue(is_recognized("integer", "int32"))
        self.assertFalse(is_recognized("integer", "date"))
        self.assertFalse(is_recognized("string", "made-up"))
        self.assertFalse(is_recognized("object", "date"))
