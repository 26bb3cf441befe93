"""Tests for L{kubetwist.api.renamed}."""

from __future__ import annotations

from importlib import import_module

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.admission import RENAMED_CONTEXT_METHODS
from kubetwist.api.quantity import Quantity
from kubetwist.api.renamed import renamed_attributes, renamed_names
from kubetwist.api.requestscope import RequestScope
from kubetwist.registry.admissioncontext import ServerAdmissionContext
from kubetwist.testing.admission import StubServer

#: Modules, names in kubetwist 0.1, and current names.
RENAMED = (
    ("kubetwist.api.errors", "Cause", "FieldError"),
    ("kubetwist.api.storage", "SOME", "UNKNOWN_REVISION"),
    ("kubetwist.api.podspecs", "declared", "declared_containers"),
    ("kubetwist.client.factory", "Outgoing", "ClientFactory"),
    ("kubetwist.controllers.machinery.context", "Context", "ControllerContext"),
    ("kubetwist.interfaces", "IForwardStorage", "IBumpableStorage"),
    ("kubetwist.interfaces", "IRewriting", "IStaleFormatDetector"),
    ("kubetwist.interfaces", "IUnreadableDeleter", "ICorruptObjectDeleter"),
    ("kubetwist.storage.errors", "ForeignValue", "UnknownFormatError"),
    ("kubetwist.storage.errors", "UnreadableValue", "CorruptObjectError"),
    ("kubetwist.storage.errors", "UnwritableValue", "TransformToStorageError"),
    ("kubetwist.testing.etcd", "why_no_etcd", "etcd_skip_reason"),
    ("kubetwist.testing.history", "Seen", "WatchEvent"),
    ("kubetwist.testing.history", "Watched", "WatchHistory"),
    ("kubetwist.testing.requests", "AnswerFault", "ResponseFault"),
    ("kubetwist.testing.requests", "Selection", "RequestMatcher"),
    ("kubetwist.testing.requests", "SentRequest", "RecordedRequest"),
)


class RenamedTests(SynchronousTestCase):
    """Tests for the names of public classes in the previous release."""

    def test_public_names(self) -> None:
        """The old name of a public class is the class itself; its use emits a warning with the new name."""
        for name, old, new in RENAMED:
            module = import_module(name)
            self.assertIs(getattr(module, old), getattr(module, new), old)
            [warning] = self.flushWarnings()
            self.assertEqual(warning["category"], DeprecationWarning)
            self.assertEqual(
                warning["message"], f"{name}.{old} was renamed {new}; the old name will be removed in kubetwist 0.3"
            )

    def test_unknown_name(self) -> None:
        """An unknown name raises L{AttributeError}, as in any module."""
        find = renamed_names("kubetwist.api.errors", {"Cause": "FieldError"})
        error = self.assertRaises(AttributeError, find, "Other")
        self.assertEqual(str(error), "module 'kubetwist.api.errors' has no attribute 'Other'")
        self.assertEqual(self.flushWarnings(), [])

    def test_admission_context(self) -> None:
        """The old names of the methods of an AdmissionContext call the renamed methods, with a warning."""
        server = StubServer()
        for old, new in RENAMED_CONTEXT_METHODS.items():
            self.assertEqual(getattr(server, old), getattr(server, new))
            [warning] = self.flushWarnings()
            self.assertEqual(warning["category"], DeprecationWarning)
            text = f"StubServer.{old} was renamed {new}; the old name will be removed in kubetwist 0.3"
            self.assertEqual(warning["message"], text)
            self.assertTrue(hasattr(ServerAdmissionContext, "__getattr__"))

    def test_attributes(self) -> None:
        """The old names of attributes of public classes return the renamed attributes, with a warning."""
        for value, old, new in (
            (Quantity.parse("1500m"), "billionths", "nanos"),
            (Quantity.parse("1500m"), "scaled", "scaled_value"),
            (RequestScope(), "forgives", "ignores_error"),
            (RequestScope(), "large", "is_large"),
        ):
            self.assertEqual(getattr(value, old), getattr(value, new))
            [warning] = self.flushWarnings()
            self.assertEqual(warning["category"], DeprecationWarning)
            self.assertIn(f"{old} was renamed {new}; ", warning["message"])

    def test_unknown_attribute(self) -> None:
        """An object whose class has renamed attributes has no further attributes."""
        find = renamed_attributes("Thing", {"old": "new"})
        error = self.assertRaises(AttributeError, find, 1, "other")
        self.assertEqual(str(error), "'int' object has no attribute 'other'")
        self.assertEqual(self.flushWarnings(), [])
