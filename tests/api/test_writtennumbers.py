"""Tests for L{kubetwist.api.writtennumbers}."""

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import decode_json
from kubetwist.api.writtennumbers import WrittenNumber, with_written_numbers, without_written_numbers


class WrittenNumberTests(SynchronousTestCase):
    """Tests for numbers that keep their text."""

    def test_texts(self) -> None:
        """Fractions, exponents and numbers of more than 64 bits keep their text; integers are integers."""
        result = with_written_numbers(b'{"a": [1.50, 1E3, 18446744073709551616], "b": 7, "c": 18446744073709551615}')
        self.assertEqual([one.text for one in result["a"]], ["1.50", "1E3", "18446744073709551616"])
        self.assertEqual([type(result[name]) for name in "bc"], [int, int])

    def test_equal(self) -> None:
        """The result equals the usual decoder's, or is None if that fails."""
        document = b'{"a": 1e-10, "b": [123456789012345678901234567890, {"c": null}]}'
        result = with_written_numbers(document)
        self.assertEqual(result, decode_json(document).value)
        plain = without_written_numbers(result)
        self.assertEqual((plain, type(plain["a"])), (result, float))
        for broken in (b"a: 1.5", b'{"a": {"b": 1}, "a": {"c": 1.5}}', b"1" * 5000):
            self.assertIsNone(with_written_numbers(broken), broken[:40])

    def test_is_a_number(self) -> None:
        """Such a number behaves like a float."""
        self.assertEqual(WrittenNumber("1.50") + 1, 2.5)
