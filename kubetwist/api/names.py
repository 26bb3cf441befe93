"""
Validation of names: each function returns error messages, as in apimachinery.

See kubernetes/apimachinery, C{pkg/util/validation} and C{pkg/api/validate/content}. Lengths are counted in bytes of
UTF-8, as in Go, although the messages of the first package say characters.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final


class Reworded(str):
    """
    An error message that earlier releases word differently.

    @ivar first: The first release with this message.
    @ivar earlier: The message of releases before.
    """

    first: tuple[int, int]
    earlier: str

    @classmethod
    def since(cls, major: int, minor: int, message: str, earlier: str) -> Reworded:
        """
        Return a message with the one of earlier releases.

        @param major: The major version of the first release with the message.
        @param minor: Its minor version.
        @param message: The message.
        @param earlier: The message of earlier releases.
        """
        reworded = cls(message)
        reworded.first, reworded.earlier = (major, minor), earlier
        return reworded


#: Validates a name; the second argument is true for a C{generateName}.
ValidateNameFunc = Callable[[str, bool], Sequence[str]]

DNS1123_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS1123_SUBDOMAIN: Final = DNS1123_LABEL + r"(\." + DNS1123_LABEL + ")*"
DNS1035_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
SEARCH_DOMAIN: Final = _SEARCH_LABEL + r"(\." + _SEARCH_LABEL + ")*"
WILDCARD_DNS1123_SUBDOMAIN: Final = r"\*\." + DNS1123_SUBDOMAIN
QUALIFIED_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE: Final = f"({QUALIFIED_NAME})?"
CONFIG_MAP_KEY: Final = "[-._a-zA-Z0-9]+"
ENV_VAR_NAME: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
HTTP_HEADER_NAME: Final = "[-A-Za-z0-9]+"
PERCENT: Final = "[0-9]+%"
HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_dns1123_label = re.compile(DNS1123_LABEL).fullmatch
_search_domain = re.compile(SEARCH_DOMAIN).fullmatch
_dns1123_subdomain = re.compile(DNS1123_SUBDOMAIN).fullmatch
_dns1035_label = re.compile(DNS1035_LABEL).fullmatch
_wildcard = re.compile(WILDCARD_DNS1123_SUBDOMAIN).fullmatch
_qualified = re.compile(QUALIFIED_NAME).fullmatch
_label_value = re.compile(LABEL_VALUE).fullmatch
_config_map_key = re.compile(CONFIG_MAP_KEY).fullmatch
_env_var_name = re.compile(ENV_VAR_NAME).fullmatch
_c_identifier = re.compile(C_IDENTIFIER).fullmatch
_http_header_name = re.compile(HTTP_HEADER_NAME).fullmatch
_http_path = re.compile(HTTP_PATH).fullmatch
_percent = re.compile(PERCENT).fullmatch
_port_name = re.compile("[-a-z0-9]+").fullmatch
_letter = re.compile("[a-z]").search

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_QUALIFIED_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)

#: The maximum length of generated names, and the length of their random suffix.
_GENERATED_LENGTH: Final = 63
_RANDOM_LENGTH: Final = 5
#: Consonants and digits that look like no vowel, so that no words are generated.
_RANDOM_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def generate_name(base: str) -> str:
    """Return a name that starts with C{base} and ends in five random characters, of at most 63 characters."""
    prefix = base[: _GENERATED_LENGTH - _RANDOM_LENGTH]
    return prefix + "".join(random.choices(_RANDOM_ALPHABET, k=_RANDOM_LENGTH))


def byte_length(text: str) -> int:
    """Return the length of C{text} as Go counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """Return the message for a value that does not match a pattern (Go: C{RegexError})."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def max_length_error(limit: int, unit: str = "characters") -> str:
    """Return the message for a value over its maximum length (Go: C{MaxLenError})."""
    return f"must be no more than {limit} {unit}"


def inclusive_range_error(low: int, high: int) -> str:
    """Return the message for a number outside of its range (Go: C{InclusiveRangeError})."""
    return f"must be between {low} and {high}, inclusive"


def _masked(name: str) -> str:
    # The reference replaces the last two characters, not the dash alone: apimachinery pkg/api/validation/generic.go.
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def validate_dns1123_subdomain(name: str, prefix: bool = False, *, unit: str = "characters") -> list[str]:
    """Validate names of most kinds: labels of lower case letters, digits and dashes, joined by dots."""
    if prefix:
        name = _masked(name)
    matches = _dns1123_subdomain(name)
    if matches and len(name) <= 253:
        return []
    problems = []
    if byte_length(name) > 253:
        problems.append(max_length_error(253, unit))
    if not matches:
        problems.append(regex_error(_SUBDOMAIN_RULE, DNS1123_SUBDOMAIN, "example.com"))
    return problems


def validate_search_domain(name: str) -> list[str]:
    """Validate DNS search domains: subdomains that may contain underscores."""
    problems = []
    if byte_length(name) > 253:
        problems.append(max_length_error(253))
    if not _search_domain(name):
        rule = _SUBDOMAIN_RULE.replace("'-' or '.'", "'_', '-' or '.'")
        problems.append(regex_error(rule, SEARCH_DOMAIN, "example.com"))
    return problems


def validate_long_name(name: str, prefix: bool = False) -> list[str]:
    """
    Validate names of kinds whose validation is declared as C{k8s-long-name}: subdomains with a limit in bytes.

    A C{generateName} is not checked, only the generated name.
    """
    return [] if prefix else validate_dns1123_subdomain(name, unit="bytes")


def validate_dns1123_label(name: str, prefix: bool = False, *, unit: str = "characters") -> list[str]:
    """Validate names of namespaces, containers and volumes: a subdomain without dots."""
    if prefix:
        name = _masked(name)
    matches = _dns1123_label(name)
    if matches and len(name) <= 63:
        return []
    problems = []
    if byte_length(name) > 63:
        problems.append(max_length_error(63, unit))
    if not matches:
        if _dns1123_subdomain(name):
            problems.append("must not contain dots")
        else:
            problems.append(regex_error(_LABEL_RULE, DNS1123_LABEL, "my-name", "123-abc"))
    return problems


def validate_dns1035_label(name: str, prefix: bool = False) -> list[str]:
    """Validate names that start with a letter and have no dots."""
    if prefix:
        name = _masked(name)
    problems = []
    if byte_length(name) > 63:
        problems.append(max_length_error(63))
    if not _dns1035_label(name):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        problems.append(regex_error(rule, DNS1035_LABEL, "my-name", "abc-123"))
    return problems


def validate_wildcard_dns1123_subdomain(name: str) -> list[str]:
    """Validate host names whose first label is C{*}."""
    problems = []
    if byte_length(name) > 253:
        problems.append(max_length_error(253))
    if not _wildcard(name):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        problems.append(regex_error(rule, WILDCARD_DNS1123_SUBDOMAIN, "*.example.com"))
    return problems


def validate_fully_qualified_name(name: str, parts: int = 3) -> list[str]:
    """
    Validate a domain with at least C{parts} labels; an empty one gives C{""}, for the cause C{FieldValueRequired}.

    The errors of the subdomain are joined to one message.
    """
    if not name:
        return [""]
    problems = validate_dns1123_subdomain(name)
    if problems:
        return [",".join(problems)]
    if name.count(".") + 1 < parts:
        word = {2: "two", 3: "three"}[parts]
        return [f"should be a domain with at least {word} segments separated by dots"]
    return []


def validate_domain_prefixed_path(path: str) -> list[tuple[str, str]]:
    """
    Validate keys such as C{acme.io/foo}, which start with a domain.

    @return: Errors with the invalid part; the message for an empty part is C{""}, for the cause C{FieldValueRequired}.
    """
    if not path:
        return [("", "")]
    domain, _, rest = path.partition("/")
    if not domain or not rest:
        return [(path, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = [(domain, text) for text in validate_dns1123_subdomain(domain)]
    if not _http_path(rest):
        problems.append((rest, regex_error("Invalid path", HTTP_PATH)))
    return problems


def validate_qualified_name(name: str) -> list[str]:
    """Validate label keys, finalizers and condition types: a name with an optional domain and slash before it."""
    prefix, slash, rest = name.partition("/")
    if not slash:
        rest = prefix
        problems = []
    elif "/" in rest:
        return [Reworded.since(1, 35, _key_rule("a valid label key"), _key_rule("a qualified name"))]
    elif not prefix:
        problems = ["prefix part must be non-empty"]
    else:
        texts = zip(validate_dns1123_subdomain(prefix, unit="bytes"), validate_dns1123_subdomain(prefix), strict=True)
        problems = [Reworded.since(1, 35, f"prefix part {text}", f"prefix part {earlier}") for text, earlier in texts]
    matches = _qualified(rest)
    if matches and len(rest) <= 63:
        return problems
    if not rest:
        problems.append("name part must be non-empty")
    elif byte_length(rest) > 63:
        problems.append(_in_bytes(63, "name part "))
    if not matches:
        problems.append(regex_error(f"name part {_QUALIFIED_RULE}", QUALIFIED_NAME, "MyName", "my.name", "123-abc"))
    return problems


def _key_rule(subject: str) -> str:
    rule = regex_error(f"{subject} {_QUALIFIED_RULE}", QUALIFIED_NAME, "MyName", "my.name", "123-abc")
    return f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


def _in_bytes(limit: int, subject: str = "") -> str:
    """Return the error for a text that is too long; the unit is characters before 1.35."""
    return Reworded.since(1, 35, f"{subject}{max_length_error(limit, 'bytes')}", f"{subject}{max_length_error(limit)}")


def is_qualified_name(name: str) -> bool:
    """Return whether L{validate_qualified_name} returns no errors; fast for repeated names."""
    return len(name) <= _MAX_QUALIFIED_NAME_LENGTH and _is_known_qualified_name(name)


def are_labels(labels: Mapping[str, str]) -> bool:
    """Return whether the keys and values of labels have no errors; fast for repeated ones."""
    # The lengths come first, to bound the memory of the caches.
    return (
        max(map(len, labels), default=0) <= _MAX_QUALIFIED_NAME_LENGTH
        and max(map(len, labels.values()), default=0) <= _MAX_LABEL_VALUE_LENGTH
        and all(map(_is_known_qualified_name, labels))
        and all(map(_is_known_label_value, labels.values()))
    )


def are_config_map_keys(keys: Collection[str]) -> bool:
    """Return whether L{validate_config_map_key} returns no errors for some keys; fast for repeated ones."""
    return max(map(len, keys), default=0) <= _MAX_CONFIG_MAP_KEY_LENGTH and all(map(_is_known_config_map_key, keys))


_MAX_QUALIFIED_NAME_LENGTH: Final = 253 + 1 + 63
_MAX_LABEL_VALUE_LENGTH: Final = 63
_MAX_CONFIG_MAP_KEY_LENGTH: Final = 253


@lru_cache(maxsize=4096)
def _is_known_qualified_name(name: str) -> bool:
    return not validate_qualified_name(name)


@lru_cache(maxsize=4096)
def _is_known_label_value(value: str) -> bool:
    return not validate_label_value(value)


@lru_cache(maxsize=4096)
def _is_known_config_map_key(key: str) -> bool:
    return not validate_config_map_key(key)


def validate_label_value(value: str) -> list[str]:
    """Validate label values."""
    matches = _label_value(value)
    if matches and len(value) <= 63:
        return []
    problems = []
    if byte_length(value) > 63:
        problems.append(_in_bytes(63))
    if not matches:
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_error(rule, LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def validate_path_segment_name(name: str, prefix: bool = False) -> list[str]:
    """Validate names of roles and bindings: any segment of a URL path."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in "/%" if part in name]


def _validate_parent(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def validate_config_map_key(key: str) -> list[str]:
    """Validate keys of ConfigMaps and Secrets, which may be file names."""
    problems = []
    if byte_length(key) > 253:
        problems.append(max_length_error(253))
    if not _config_map_key(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(regex_error(rule, CONFIG_MAP_KEY, "key.name", "KEY_NAME", "key-name"))
    return problems + _validate_parent(key)


def validate_env_var_name(name: str) -> list[str]:
    """Validate names of environment variables: all printable ASCII characters except C{=}."""
    if not name:
        return ["environment variable name must be non-empty"]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def validate_strict_env_var_name(name: str) -> list[str]:
    """Validate names of environment variables by the rules of releases before 1.34."""
    problems = []
    if not _env_var_name(name):
        rule = (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
            "and must not start with a digit"
        )
        problems.append(regex_error(rule, ENV_VAR_NAME, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return problems + _validate_parent(name)


def validate_c_identifier(name: str) -> list[str]:
    """Validate C identifiers."""
    if _c_identifier(name):
        return []
    rule = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return [regex_error(rule, C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def validate_http_header_name(name: str) -> list[str]:
    """Validate names of HTTP headers."""
    if _http_header_name(name):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_error(rule, HTTP_HEADER_NAME, "X-Header-Name")]


def validate_percent(text: str) -> list[str]:
    """Validate percentages, such as C{25%}."""
    if _percent(text):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_error(rule, PERCENT, "1%", "93%")]


def validate_port_name(name: str) -> list[str]:
    """Validate port names by the rules of IANA."""
    problems = []
    if byte_length(name) > 15:
        problems.append(max_length_error(15))
    if not _port_name(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter(name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def validate_port_number(port: int) -> list[str]:
    """Validate port numbers."""
    return [] if 1 <= port <= 65535 else [inclusive_range_error(1, 65535)]
