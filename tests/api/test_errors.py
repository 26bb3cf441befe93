"""Tests for L{kubetwist.api.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import MAX_FIELD_ERRORS, MAX_FIELD_ERRORS_LENGTH, APIStatusError, clear_frames, invalid
from kubetwist.api.resource import GroupKind, GroupResource

DEPLOYMENTS = GroupResource("apps", "deployments")


class NameTests(SynchronousTestCase):
    """How errors show the name of an object."""

    def test_plain(self) -> None:
        """A name stands between quotation marks."""
        error = APIStatusError.not_found(DEPLOYMENTS, "web")
        self.assertEqual(error.message, 'deployments.apps "web" not found')

    def test_odd(self) -> None:
        """What could be taken for something else is written as Go quotes it; the details have it as it is."""
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
    """How much an error tells."""

    def test_many(self) -> None:
        """Of thousands of things that are wrong some are told, and how many there are more."""
        causes = [invalid(f"a[{number}]", "x", "no") for number in range(3000)]
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", causes)
        assert error.details is not None
        self.assertEqual(error.details["causes"], [cause.as_dict() for cause in causes[:MAX_FIELD_ERRORS]])
        self.assertTrue(error.message.endswith(f"] and {3000 - MAX_FIELD_ERRORS} more errors"))

    def test_long(self) -> None:
        """Nor is an answer many times as long as what it is about; something is told in any case."""
        causes = [invalid("a", "x" * MAX_FIELD_ERRORS_LENGTH, "no")] * 3
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", causes)
        assert error.details is not None
        self.assertEqual(len(error.details["causes"]), 1)
        self.assertTrue(error.message.endswith(" and 2 more errors"))

    def test_few(self) -> None:
        """What is usual is told as it is."""
        error = APIStatusError.invalid(GroupKind("", "Pod"), "p", [invalid("a", 1, "no"), invalid("b", 2, "no")])
        self.assertEqual(error.message, 'Pod "p" is invalid: [a: Invalid value: 1: no, b: Invalid value: 2: no]')


class ForgetTests(SynchronousTestCase):
    """Memory that an exception keeps."""

    def test_forget_frames(self) -> None:
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
