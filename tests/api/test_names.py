"""Tests for L{kubetwist.api.names}."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import names


class NameTests(SynchronousTestCase):
    """Tests for the validation of names."""

    def test_subdomain(self) -> None:
        """Names of most kinds have lower case letters, digits, dashes and single dots."""
        for good in ("a", "a-b.c", "0", "a" * 253):
            self.assertEqual(names.validate_dns1123_subdomain(good), [])
        for bad in ("", "A", "a..b", "-a", "a-", "a\n", "名前", "a_b"):
            self.assertEqual(
                names.validate_dns1123_subdomain(bad),
                [
                    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                    r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                ],
            )
        self.assertEqual(names.validate_dns1123_subdomain("a" * 254), ["must be no more than 253 characters"])

    def test_label(self) -> None:
        """A subdomain that is not a label is rejected because of its dots."""
        self.assertEqual(names.validate_dns1123_label("a-1"), [])
        self.assertEqual(names.validate_dns1123_label("a.b"), ["must not contain dots"])
        self.assertEqual(len(names.validate_dns1123_label("A" * 64)), 2)

    def test_dns1035_label(self) -> None:
        """RFC 1035 labels start with a letter."""
        self.assertEqual(names.validate_dns1035_label("a1"), [])
        self.assertIn("'[a-z]([-a-z0-9]*[a-z0-9])?'", names.validate_dns1035_label("1a")[0])

    def test_prefix(self) -> None:
        """A prefix of a generated name may end in a dash."""
        for problems in (
            names.validate_dns1123_subdomain,
            names.validate_dns1123_label,
            names.validate_dns1035_label,
        ):
            self.assertEqual(problems("web-", True), [])
            self.assertNotEqual(problems("web-", False), [])
            self.assertNotEqual(problems("-", True), [])

    @given(st.one_of(st.text(max_size=4), st.text("a.-_0", min_size=50, max_size=70)))
    def test_are_labels(self, text: str) -> None:
        """Exactly the labels without errors in their keys and values are valid."""
        self.assertEqual(names.are_labels({"a": "b", text: "c"}), not names.validate_qualified_name(text))
        self.assertEqual(names.are_labels({"a": text, "b": "c"}), not names.validate_label_value(text))

    @given(st.one_of(st.text(max_size=4), st.text(".-_0a", max_size=6), st.integers(250, 256).map("a".__mul__)))
    def test_are_config_map_keys(self, key: str) -> None:
        """Exactly the keys without errors are keys of config maps."""
        self.assertEqual(names.are_config_map_keys(["a", key]), not names.validate_config_map_key(key))

    def test_wildcard(self) -> None:
        """Only the first label of a host name may be a star."""
        self.assertEqual(names.validate_wildcard_dns1123_subdomain("*.example.com"), [])
        for bad in ("*", "a.*.com", "*.*.com", "*a.com"):
            self.assertEqual(len(names.validate_wildcard_dns1123_subdomain(bad)), 1, bad)

    def test_qualified_name(self) -> None:
        """Label keys may have a domain, and every part is validated."""
        for good in ("a", "A.b_c-1", "example.com/a", "a" * 63, "b" * 253 + "/" + "a" * 63):
            self.assertEqual(names.validate_qualified_name(good), [], good)
            self.assertTrue(names.is_qualified_name(good))
        for bad, beginnings in {
            "": ["name part must be non-empty", "name part must consist of"],
            "/a": ["prefix part must be non-empty"],
            "a/": ["name part must be non-empty", "name part must consist of"],
            "A/b": ["prefix part a lowercase RFC 1123 subdomain"],
            "a/b/c": ["a valid label key must consist of"],
            "a b": ["name part must consist of"],
            "a" * 64: ["name part must be no more than 63 bytes"],
            "b" * 254 + "/a": ["prefix part must be no more than 253 bytes"],
        }.items():
            problems = names.validate_qualified_name(bad)
            self.assertEqual(len(problems), len(beginnings), problems)
            for problem, beginning in zip(problems, beginnings, strict=True):
                self.assertTrue(problem.startswith(beginning), problem)
            self.assertFalse(names.is_qualified_name(bad))

    def test_label_value(self) -> None:
        """Label values may be empty, and their length is counted in bytes."""
        self.assertEqual(names.validate_label_value(""), [])
        self.assertEqual(names.validate_label_value("a" * 64), ["must be no more than 63 bytes"])
        self.assertEqual(len(names.validate_label_value("é" * 40)), 2)
        self.assertEqual(len(names.validate_label_value("a.")), 1)

    def test_path_segment(self) -> None:
        """Names of roles may be any path segment."""
        self.assertEqual(names.validate_path_segment_name("system:controller:X"), [])
        self.assertEqual(names.validate_path_segment_name("."), ["may not be '.'"])
        self.assertEqual(names.validate_path_segment_name("..", True), [])
        self.assertEqual(names.validate_path_segment_name("a/b%c"), ["may not contain '/'", "may not contain '%'"])

    def test_config_map_key(self) -> None:
        """Keys of ConfigMaps cannot be a parent directory."""
        self.assertEqual(names.validate_config_map_key("a.b_C-1"), [])
        self.assertEqual(names.validate_config_map_key("."), ["must not be '.'"])
        self.assertEqual(names.validate_config_map_key("..a"), ["must not start with '..'"])
        self.assertEqual(len(names.validate_config_map_key("a/b")), 1)

    def test_environment(self) -> None:
        """Names of environment variables are printable without an equals sign."""
        self.assertEqual(names.validate_env_var_name("1 a:b"), [])
        self.assertEqual(names.validate_env_var_name(""), ["environment variable name must be non-empty"])
        for bad in ("a=b", "é", "a\tb"):
            self.assertEqual(len(names.validate_env_var_name(bad)), 1, bad)

    def test_ports(self) -> None:
        """Port names are short with at least one letter, and port numbers have 16 bits."""
        self.assertEqual(names.validate_port_name("http-2"), [])
        self.assertEqual(names.validate_port_name("80"), ["must contain at least one letter (a-z)"])
        self.assertEqual(len(names.validate_port_name("-a--b" + "c" * 20)), 3)
        self.assertEqual(names.validate_port_number(65535), [])
        self.assertEqual(names.validate_port_number(0), ["must be between 1 and 65535, inclusive"])

    def test_fully_qualified_name(self) -> None:
        """Fully qualified domains have at least three labels."""
        self.assertEqual(names.validate_fully_qualified_name("a.b.c"), [])
        self.assertIn("three segments", names.validate_fully_qualified_name("a.b")[0])
        self.assertEqual(names.validate_fully_qualified_name(""), [""])

    def test_long_text(self) -> None:
        """Names of megabytes are rejected in linear time."""
        for problems in (names.validate_dns1123_subdomain, names.validate_qualified_name):
            self.assertNotEqual(problems("a-" * 500_000 + "!"), [])

    def test_cache_is_bounded(self) -> None:
        """Long keys are not cached."""
        before = names._is_known_qualified_name.cache_info().currsize
        self.assertFalse(names.is_qualified_name("k" * 1000))
        self.assertEqual(names._is_known_qualified_name.cache_info().currsize, before)

    @given(st.from_regex(re.compile(names.DNS1123_SUBDOMAIN), fullmatch=True).filter(lambda name: len(name) < 254))
    def test_generated_names(self, base: str) -> None:
        """A name generated from a valid base is valid, and has at most 63 characters."""
        name = names.generate_name(base + "-")
        self.assertLessEqual(len(name), 63)
        self.assertTrue(name.startswith(base[:58]))
        self.assertRegex(name[-5:], "[bcdfghjklmnpqrstvwxz2456789]{5}")

    @given(st.text())
    def test_any_text(self, text: str) -> None:
        """Every rule accepts or rejects any text."""
        for problems in (
            names.validate_dns1123_subdomain,
            names.validate_dns1123_label,
            names.validate_dns1035_label,
            names.validate_wildcard_dns1123_subdomain,
            names.validate_qualified_name,
            names.validate_label_value,
            names.validate_path_segment_name,
            names.validate_config_map_key,
            names.validate_env_var_name,
            names.validate_strict_env_var_name,
            names.validate_c_identifier,
            names.validate_http_header_name,
            names.validate_percent,
            names.validate_port_name,
            names.validate_fully_qualified_name,
        ):
            self.assertIsInstance(problems(text), list)
