"""Tests for L{kubetwist.api.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import (
    MAX_FIELD_ERRORS,
    MAX_FIELD_ERRORS_LENGTH,
    APIStatusError,
    FieldError,
    RatchetedError,
    clear_frames,
    errors_in_release,
    invalid,
    required,
)
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import GroupKind, GroupResource

DEPLOYMENTS = GroupResource("apps", "deployments")


class NameTests(SynchronousTestCase):
    """Tests for the names of objects in errors."""

    def test_plain(self) -> None:
        """A name is quoted."""
        error = APIStatusError.not_found(DEPLOYMENTS, "web")
        self.assertEqual(error.message, 'deployments.apps "web" not found')

    def test_special_characters(self) -> None:
        """A name with special characters is quoted as in Go; the details have it unchanged."""
        name = 'a"\n\0'
        shown = r'"a\"\n\x00"'
        for error, message in (
            (APIStatusError.not_found(DEPLOYMENTS, name), f"deployments.apps {shown} not found"),
            (APIStatusError.already_exists(DEPLOYMENTS, name), f"deployments.apps {shown} already exists"),
            (APIStatusError.forbidden(DEPLOYMENTS, name, "no"), f"deployments.apps {shown} is forbidden: no"),
            (
                APIStatusError.conflict(DEPLOYMENTS, name, "no"),
                f"Operation cannot be fulfilled on deployments.apps {shown}: no",
            ),
            (
                APIStatusError.invalid(GroupKind("apps", "Deployment"), name, [invalid("a", 1, "no")]),
                f"Deployment.apps {shown} is invalid: a: Invalid value: 1: no",
            ),
        ):
            self.assertEqual(error.message, message)
            assert error.details is not None, "they name the object"
            self.assertEqual(error.details["name"], name)


class BoundTests(SynchronousTestCase):
    """Tests for the limits of errors."""

    def test_many(self) -> None:
        """Thousands of causes are limited, and the message has the number of the omitted ones."""
        causes = [invalid(f"a[{number}]", "x", "no") for number in range(3000)]
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", causes)
        assert error.details is not None
        self.assertEqual(error.details["causes"], [cause.as_dict() for cause in causes[:MAX_FIELD_ERRORS]])
        self.assertTrue(error.message.endswith(f"] and {3000 - MAX_FIELD_ERRORS} more errors"))

    def test_long(self) -> None:
        """The size of causes is limited, but at least one is included."""
        causes = [invalid("a", "x" * MAX_FIELD_ERRORS_LENGTH, "no")] * 3
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", causes)
        assert error.details is not None
        self.assertEqual(len(error.details["causes"]), 1)
        self.assertTrue(error.message.endswith(" and 2 more errors"))

    def test_usual_number(self) -> None:
        """A usual number of causes is included unchanged."""
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", [invalid("a", 1, "no"), invalid("b", 2, "no")])
        self.assertEqual(error.message, 'Pod "p" is invalid: [a: Invalid value: 1: no, b: Invalid value: 2: no]')


class ForgetTests(SynchronousTestCase):
    """Tests for the memory referenced by an exception."""

    def test_clear_frames(self) -> None:
        """An exception keeps its message, but neither tracebacks nor its causes."""
        deeper, outer = KeyError("deeper"), APIStatusError.bad_request("no")
        with self.assertRaises(APIStatusError):
            try:
                try:
                    raise deeper
                except KeyError as error:
                    raise ValueError from error
            except ValueError:
                raise outer from None
        cause = outer.__context__
        clear_frames(outer)
        for one in (outer, cause, deeper):
            assert one is not None
            self.assertEqual((one.__traceback__, one.__context__, one.__cause__), (None, None, None))
        self.assertEqual(str(outer), "no")


_OLD, _NEW = FeatureGates((1, 33)), FeatureGates((1, 34))


class ReleaseTests(SynchronousTestCase):
    """Tests for errors that differ between releases."""

    def test_values(self) -> None:
        """Before 1.34, lists and maps are shown in Go syntax."""
        error = invalid("spec.a", ["x"], "is wrong")
        self.assertEqual(error.message, 'Invalid value: ["x"]: is wrong')
        messages = [shown.message for shown in (*errors_in_release([error], _OLD), *errors_in_release([error], _NEW))]
        self.assertEqual(messages, ['Invalid value: []string{"x"}: is wrong', error.message])
        self.assertFalse(invalid("spec.a", "x", "is wrong").differs)

    def test_since(self) -> None:
        """A release may have another error, or none."""
        error = required("a").since(1, 34)
        self.assertEqual(errors_in_release([error], _OLD), [])
        self.assertEqual(errors_in_release([error], _NEW), [required("a")])
        self.assertFalse(errors_in_release([error], _NEW)[0].differs)
        error = invalid("a", None, "b").since(1, 34, required("c", "d").since(1, 32, required("e")))
        for release, expected in [
            ((1, 31), required("e")),
            ((1, 33), required("c", "d")),
            ((1, 35), invalid("a", None, "b")),
        ]:
            self.assertEqual(errors_in_release([error], FeatureGates(release)), [expected])

    def test_before(self) -> None:
        """An error may be one of earlier releases only."""
        error = invalid("a", ["x"], "b").before(1, 34)
        self.assertEqual([one.message for one in errors_in_release([error], _OLD)], ['Invalid value: []string{"x"}: b'])
        self.assertFalse(errors_in_release([error], _OLD)[0].differs)
        self.assertEqual(errors_in_release([error], _NEW), [])
        self.assertEqual(errors_in_release([error.before(1, 36)], _NEW), [])

    def test_reworded(self) -> None:
        """A release may have another detail."""
        error = required("a").reworded(1, 34, "a is required")
        self.assertEqual(errors_in_release([error], _OLD), [required("a", "a is required")])
        error = invalid("a", ["x"], "new").reworded(1, 34, "old").since(1, 36, invalid("a", 1, "").reworded(1, 35, "b"))
        self.assertEqual([one.message for one in errors_in_release([error], _OLD)], ["Invalid value: 1: b"])
        error = invalid("a", ["x"], "new").reworded(1, 33, "old")
        earlier = errors_in_release([error], FeatureGates((1, 32)))
        self.assertEqual([one.message for one in earlier], ['Invalid value: []string{"x"}: old'])

    def test_ratcheted(self) -> None:
        """An error that was there before stays one in all releases."""
        error = RatchetedError.of(invalid("a", 1, "b").since(1, 34, invalid("a", "integer", "b")))
        for features, value in [(_OLD, '"integer"'), (_NEW, "1")]:
            (found,) = errors_in_release([error], features)
            self.assertIsInstance(found, RatchetedError)
            self.assertEqual(found.message, f"Invalid value: {value}: b")

    def test_statuses(self) -> None:
        """The Status has the causes of the release; other errors may have another code."""
        error = APIStatusError.invalid(GroupKind("", "A"), "a", [invalid("b", None, "c"), required("d")])
        self.assertEqual(
            error.in_release(_OLD).message, 'A "a" is invalid: [b: Invalid value: "null": c, d: Required value]'
        )
        self.assertEqual(error.in_release(_NEW).message, error.message)
        same = APIStatusError.invalid(GroupKind("", "A"), "a", [FieldError("FieldValueRequired", "x", "y")])
        self.assertIs(same.in_release(_OLD), same)
        error = APIStatusError.bad_request("a").since(1, 34, APIStatusError.unknown("b"))
        self.assertEqual([error.in_release(one).code for one in (_OLD, _NEW)], [500, 400])
