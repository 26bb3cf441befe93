"""Tests for L{kubetwist.api.identityheaders}."""

from __future__ import annotations

from string import ascii_uppercase
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.identityheaders import (
    AmbiguousHeaderError,
    check_names,
    decode_field_value,
    extra_key,
    identity_fields,
    optional_field,
)
from kubetwist.api.resource import UserInfo

_NAMES = st.text("abx-_", min_size=1, max_size=12).map(str.encode)


class ValueTests(SynchronousTestCase):
    """Tests for values of fields."""

    def test_single(self) -> None:
        """An absent optional field is empty, and a repeated one is rejected."""
        self.assertEqual(optional_field({}, b"x-user"), "")
        self.assertEqual(optional_field({b"x-user": ["zoë".encode()]}, b"x-user"), "zoë")
        error = self.assertRaises(AmbiguousHeaderError, optional_field, {b"x-user": [b"a", b"a"]}, b"x-user")
        self.assertEqual(str(error), "the header X-User is repeated")

    def test_text(self) -> None:
        """Control characters, and bytes that are not UTF-8, are rejected."""
        for value in (b"a\x00", b"a\x1b[0m", b"\x7f", b"\xff", b"\xc3"):
            self.assertRaises(AmbiguousHeaderError, decode_field_value, b"x-user", value)
        self.assertEqual(decode_field_value(b"x-user", b"a\tb c"), "a\tb c")

    @given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=ascii_uppercase)))
    def test_keys(self, key: str) -> None:
        """A percent-encoded key is decoded, but its plain letters become lower case."""
        name = b"x-extra-" + quote(key, safe="").encode()
        self.assertEqual(extra_key(name.lower(), b"x-extra-"), key)

    def test_malformed_keys(self) -> None:
        """A badly encoded key is unchanged; one that is not text is rejected."""
        self.assertEqual(extra_key(b"x-extra-a%2", b"x-extra-"), "a%2")
        self.assertEqual(extra_key(b"x-extra-%zz%41", b"x-extra-"), "%zz%41")
        self.assertRaises(AmbiguousHeaderError, extra_key, b"x-extra-%ff", b"x-extra-")


class NameTests(SynchronousTestCase):
    """Tests for L{check_names}."""

    def test_ambiguous_name(self) -> None:
        """A name that equals a known one with underscores as dashes is rejected."""
        for name in (b"x_user", b"x_extra-k", b"x_extra_k"):
            self.assertRaises(AmbiguousHeaderError, check_names, [b"host", name], {b"x-user"}, (b"x-extra-",))
        check_names([b"x-user", b"x-extra-a_b", b"x_other", b"y_user"], {b"x-user"}, (b"x-extra-",))

    @given(st.lists(_NAMES))
    def test_never_ambiguous(self, names: list[bytes]) -> None:
        """An accepted name is not equal to another known name with underscores as dashes."""
        exact, prefix = {b"a-b"}, b"x-"
        try:
            check_names(names, exact, (prefix,))
        except AmbiguousHeaderError:
            return
        for name in names:
            dashed = name.replace(b"_", b"-")
            self.assertEqual(dashed in exact, name in exact)
            self.assertEqual(dashed.startswith(prefix), name.startswith(prefix))


class IdentityTests(SynchronousTestCase):
    """Tests for L{identity_fields}."""

    def test_all_attributes(self) -> None:
        """Name, uid, groups and extra values have fields; keys are escaped where names require it."""
        user = UserInfo("jane", "7", ("a", "b"), {"acme.com/project": ("x", "y"), "100%": ("z",)})
        self.assertEqual(
            identity_fields(user),
            [
                (b"X-Remote-User", b"jane"),
                (b"X-Remote-Uid", b"7"),
                (b"X-Remote-Group", b"a"),
                (b"X-Remote-Group", b"b"),
                (b"X-Remote-Extra-acme.com%2Fproject", b"x"),
                (b"X-Remote-Extra-acme.com%2Fproject", b"y"),
                (b"X-Remote-Extra-100%25", b"z"),
            ],
        )
        self.assertEqual(identity_fields(UserInfo("jane")), [(b"X-Remote-User", b"jane")])
        self.assertEqual(identity_fields(UserInfo("jane", "7"), with_uid=False), [(b"X-Remote-User", b"jane")])

    def test_control_characters(self) -> None:
        """A name with a line break is rejected."""
        for user in (UserInfo("jane\r\nX-Remote-Group: system:masters"), UserInfo("jane", groups=("a\0",))):
            self.assertRaises(AmbiguousHeaderError, identity_fields, user)

    @given(st.dictionaries(st.text(min_size=1).filter(lambda key: key == key.lower()), st.just(("value",))))
    def test_keys_are_read_back(self, extra: dict[str, tuple[str, ...]]) -> None:
        """A reader of the fields decodes the same keys, and all field names are valid."""
        prefix = b"x-remote-extra-"
        fields = [name.lower() for name, _ in identity_fields(UserInfo("jane", extra=extra))[1:]]
        self.assertEqual([extra_key(name, prefix) for name in fields], list(extra))
        for name in fields:
            self.assertRegex(name, rb"\A[!#$%&'*+.^_`|~0-9a-z-]+\Z")
