"""Tests for L{kubetwist.cel.literals}."""

from __future__ import annotations

from kubetwist.cel.values import UInt
from tests.cel.support import CelTestCase


class LiteralTests(CelTestCase):
    """Tests for literals of all forms."""

    def test_numbers(self) -> None:
        """Integers are decimal or hexadecimal, up to the limits of their type."""
        self.assertValues(
            {
                "0x1F": 31,
                "-9223372036854775808": -(2**63),
                "18446744073709551615u": UInt(2**64 - 1),
                "0xFFu": UInt(255),
                "1.5e2": 150.0,
                ".25": 0.25,
                "-.5": -0.5,
                "1e3": 1000.0,
            }
        )

    def test_texts(self) -> None:
        """
        String and bytes literals may have escapes, raw forms and triple quotes; numeric escapes in bytes are bytes.
        """
        self.assertValues(
            {
                r"'a\n\t\"\\\x41\101\u00e9\U0001F600'": 'a\n\t"\\AAé😀',
                r"r'a\n'": "a\\n",
                '"""one "quoted"\ntwo"""': 'one "quoted"\ntwo',
                r"b'\xff\101é'": b"\xffA\xc3\xa9",
                r"B'''raw?'''": b"raw?",
                "'''it's'''": "it's",
                "'a\\r\\nb'": "a\r\nb",
            }
        )

    def test_out_of_range(self) -> None:
        """A literal out of range is an error at its position."""
        self.assertRefused(
            {
                "1 + 9223372036854775808": "1:5: invalid int literal",
                "18446744073709551616u": "1:1: invalid uint literal",
                "1e999": "1:1: invalid double literal",
                r"'\ud800'": "1:1: invalid unicode code point",
                r"b'\u0041'": "1:1: unable to unescape string",
                "1" * 5000: "1:1: invalid int literal",
            }
        )
