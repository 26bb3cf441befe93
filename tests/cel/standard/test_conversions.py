"""Tests for L{kubetwist.cel.standard.conversions}."""

from __future__ import annotations

from kubetwist.cel.values import UInt
from tests.cel.moments import SECOND
from tests.cel.support import CelTestCase


class ConversionTests(CelTestCase):
    """Tests for L{kubetwist.cel.standard.conversions}."""

    def test_conversions(self) -> None:
        """Values are converted and formatted as in Go."""
        self.assertValues(
            {
                "int('-42')": -42,
                "int(2.9)": 2,
                "int(-2.9)": -2,
                "int(duration('1s'))": SECOND,
                "int(timestamp('1970-01-01T00:00:09.9Z'))": 9,
                "uint('42')": UInt(42),
                "uint(i)": UInt(7),
                "double('1e3')": 1000.0,
                "double('-0x1.8P+1')": -3.0,
                "double(i)": 7.0,
                "bool('True')": True,
                "bytes('é')": b"\xc3\xa9",
                "string(b'\\xc3\\xa9')": "é",
                "string(1.0)": "1",
                "string(1e21)": "1e+21",
                "string(123456789.5)": "1.234567895e+08",
                "string(0.00001)": "1e-05",
                "string(1.5)": "1.5",
                "string(true)": "true",
                "string(5u)": "5",
                "string(duration('90.5s'))": "90.5s",
                "string(timestamp('2020-02-29T00:00:00.120Z'))": "2020-02-29T00:00:00.12Z",
                "string(timestamp('2020-02-29T00:00:00+02:00'))": "2020-02-29T00:00:00+02:00",
                "string(timestamp(0))": "1970-01-01T00:00:00Z",
            }
        )
        self.assertFails(
            {
                "int(s)": "type conversion error from 'string' to 'int'",
                "int(d * 1e300)": "integer overflow",
                "uint(-i)": "unsigned integer overflow",
                "bool(s)": "type conversion error from 'string' to 'bool'",
                "string(b'\\xff' + b'')": "invalid UTF-8 in bytes, cannot convert to string",
                "duration(s)": "type conversion error from 'string' to 'google.protobuf.Duration'",
                "timestamp(s)": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
                "timestamp(i * 1000000000000)": "timestamp overflow",
            }
        )
