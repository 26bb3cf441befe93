"""Tests for L{kubetwist.cel.admission}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.admission import admission_environment, namespace_type, request_value
from kubetwist.cel.errors import CompileErrors


class EnvironmentTests(SynchronousTestCase):
    """Tests for L{admission_environment} and the types of its variables."""

    def test_request(self) -> None:
        """The fields of C{request} are typed; selecting other fields fails at compile time."""
        environment = admission_environment()
        self.assertEqual(str(environment.compile("request.userInfo.extra['a']").output_type), "list(string)")
        self.assertEqual(str(environment.compile("request.dryRun").output_type), "bool")
        error = self.assertRaises(CompileErrors, environment.compile, "request.uid == 'a'")
        self.assertIn("undefined field 'uid'", str(error))

    def test_variables(self) -> None:
        """C{params} and C{authorizer} are declared only on request."""
        for text, environment in (
            ("params == null", admission_environment()),
            ("authorizer.requestResource.check('get').allowed()", admission_environment(authorizer=False)),
        ):
            self.assertIn("undeclared reference", str(self.assertRaises(CompileErrors, environment.compile, text)))
        environment = admission_environment(params=True)
        self.assertEqual(str(environment.compile("params.any == null").output_type), "bool")
        environment.compile("authorizer.requestResource.check('get').allowed()")

    def test_patches(self) -> None:
        """Objects and JSON patches can be created in mutations only."""
        text = "[JSONPatch{op: 'remove', path: '/a'}]"
        self.assertRaises(CompileErrors, admission_environment().compile, text)
        admission_environment(patches=True).compile(text)

    def test_namespace(self) -> None:
        """Only the fields of a namespace that policies may read are declared."""
        fields = namespace_type().fields()["metadata"].fields()
        self.assertIn("labels", fields)
        self.assertNotIn("managedFields", fields)

    def test_made_once(self) -> None:
        """An environment is created once for each set of variables."""
        self.assertIs(admission_environment(True), admission_environment(True))
        self.assertIsNot(admission_environment(True), admission_environment(False))

    def test_request_value(self) -> None:
        """C{options} is a field of C{request} only if there are options."""
        request = {"name": "a"}
        self.assertEqual(request_value(request, True, None), {"name": "a", "dryRun": True})
        self.assertEqual(request_value(request, False, {"x": 1})["options"], {"x": 1})
        self.assertEqual(request, {"name": "a"})
