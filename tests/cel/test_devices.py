"""Tests for L{kubetwist.cel.devices}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.devices import SelectorCostError, SelectorError, SelectorProgramError, check_selector


class SelectorTests(SynchronousTestCase):
    """Tests for L{check_selector}."""

    def test_good(self) -> None:
        """C{device} has a driver, and attributes and capacity by domain; the type of attributes is dynamic."""
        for text in (
            'device.driver == "gpu.example.com"',
            "device.allowMultipleAllocations",
            'device.attributes["gpu.example.com"].healthy',
            'device.attributes["gpu.example.com"].model.startsWith("a") && "x" in device.capacity',
            'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0',
            'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.0.0"))',
            'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.a && gpu.b)',
        ):
            check_selector(text)

    def test_wrong(self) -> None:
        """An expression that does not compile or is not a condition is rejected with the compiler's message."""
        for text, why in (
            ("device.driver ==", "compilation failed: ERROR: <input>:1:17: Syntax error"),
            ("device.colour", "compilation failed: ERROR: <input>:1:7: undefined field 'colour'"),
            ("node.name == 'a'", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'node'"),
            ("device.driver", "must evaluate to bool or the unknown type, not string"),
            ("1", "must evaluate to bool or the unknown type, not int"),
        ):
            error = self.assertRaises(SelectorError, check_selector, text)
            self.assertNotIsInstance(error, (SelectorProgramError, SelectorCostError))
            self.assertTrue(str(error).startswith(why), str(error))
        error = self.assertRaises(SelectorProgramError, check_selector, "int('x') == 1")
        self.assertIn("program instantiation failed: type conversion error", str(error))

    def test_cost(self) -> None:
        """An expression whose estimated cost exceeds the limit, by the maximum sizes of a device, is rejected."""
        nested = "device.attributes.exists(a, device.attributes[a].exists(b, {}))"
        check_selector(nested.format("b == 'x'"))
        within = 'device.attributes.exists(c, device.attributes[c].exists(d, d.matches(a + "+")))'
        error = self.assertRaises(SelectorCostError, check_selector, nested.format(within))
        self.assertEqual(str(error), "too complex, exceeds cost limit")
