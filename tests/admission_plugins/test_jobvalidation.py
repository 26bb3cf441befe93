"""Tests for L{JobValidation}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.jobvalidation import JobValidation
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, write
from tests.admission_plugins.podgroups import server


class JobTests(PluginTestCase):
    """Tests for L{JobValidation}."""

    plugin = JobValidation()

    def job(self, parallelism: int, group: str = "") -> JSONObject:
        """Return a Job."""
        spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
        return {
            "metadata": {"name": "j", "uid": "u"},
            "spec": {"parallelism": parallelism, "template": {"spec": spec}},
        }

    def test_gang(self) -> None:
        """The parallelism of a gang-scheduled Job cannot change, whether the PodGroup belongs to the Job or not."""
        verifyObject(IValidatingAdmission, self.plugin)
        gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        for group, owner in (("g", ""), ("", "u")):
            context = server("podgroups", "g", uid=owner, **gang)
            request = write(self.job(3, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
            self.assertEqual(
                self.error_text(self.plugin, request),
                'cannot change parallelism for a Job referencing gang-scheduled PodGroup "g"',
            )
            same = write(self.job(2, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
            self.validate(self.plugin, same)

    def test_not_gang(self) -> None:
        """
        The parallelism of other Jobs can change: without a group, without gang scheduling, or with another Job's group.
        """
        for context in (
            Context(),
            server("podgroups", "g", uid="u", schedulingPolicy={"basic": {}}),
            server("podgroups", "g", uid="v", schedulingPolicy={"gang": {}}),
        ):
            for group in ("", "gone"):
                request = write(self.job(3, group), "jobs.batch", "UPDATE", old=self.job(2, group), context=context)
                self.validate(self.plugin, request)
