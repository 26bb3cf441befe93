"""Tests for L{kubetwist.registry.batch.validation.job} and L{kubetwist.registry.batch.validation.cronjob}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.batch.validation import jobstatus
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, made, problems

_POD = {"containers": [{"name": "a", "image": "b"}], "restartPolicy": "Never"}


def job(restart: str = "Never", **spec: Any) -> list[str]:
    """Return the errors of a Job."""
    template = {"spec": {**_POD, "restartPolicy": restart}}
    return problems("batch", "Job", spec={"template": template, "manualSelector": False, **spec})


def indexed(**spec: Any) -> list[str]:
    """Return the errors of an indexed Job with three completions."""
    return job(**{"completionMode": "Indexed", "completions": 3, **spec})


class PolicyTests(SynchronousTestCase):
    """Tests for failure and success policies."""

    def test_success(self) -> None:
        """A success rule has valid indexes or a valid count."""
        path = "spec.successPolicy.rules"
        for rules, expected in (
            ([], f"{path}: Required value: at least one rules must be specified when the successPolicy is specified"),
            ([{}], f"{path}[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"),
            ([{"succeededCount": 4}], f"{path}[0].succeededCount: Invalid value: 4: must be less than or equal to 3 "
             "(the number of specified completions)"),
            ([{"succeededCount": 2, "succeededIndexes": "1"}], f"{path}[0].succeededCount: Invalid value: 2: "
             "must be less than or equal to 1 (the number of indexes in the specified succeededIndexes field)"),
            ([{"succeededIndexes": "2-1"}], f'{path}[0].succeededIndexes: Invalid value: "2-1": '
             "error parsing succeededIndexes: non-increasing order, previous: 2, current: 1"),
            ([{"succeededIndexes": "3"}], f'{path}[0].succeededIndexes: Invalid value: "3": '
             'error parsing succeededIndexes: too large index: "3"'),
            ([{"succeededCount": 1}] * 21, f"{path}: Too many: 21: must have at most 20 items"),
        ):  # fmt: skip
            self.assertEqual(indexed(successPolicy={"rules": rules}), [expected])
        self.assertEqual(indexed(successPolicy={"rules": [{"succeededCount": 2, "succeededIndexes": "0,+2"}]}), [])

    def test_success_of_other_jobs(self) -> None:
        """Only indexed Jobs may have a success policy; it is not validated further for other Jobs."""
        result = job(completions=3, successPolicy={"rules": [{}]})
        self.assertEqual(len(result), 1)
        self.assertRegex(result[0], r"^spec\.successPolicy: Invalid value: \{.*\}: requires indexed completion mode$")

    def test_failure(self) -> None:
        """A failure rule has an action and a condition."""
        path = "spec.podFailurePolicy.rules[0]"
        for rule, expected in (
            ({"onExitCodes": {"operator": "In", "values": [1]}}, [
                f'{path}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
            ]),
            ({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}, [
                f'{path}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
            ]),
            ({"action": "Count"}, [
                f"{path}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ]),
            ({"action": "Count", "onPodConditions": [{"type": "a b"}], "onExitCodes": {"values": [2, 1, 2]}}, [
                f'{path}.onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
                f"{path}.onExitCodes.values[2]: Duplicate value: 2",
                f"{path}.onExitCodes.values: Invalid value: [2,1,2]: must be ordered",
                f'{path}.onPodConditions[0].type: Invalid value: "a b": name part must consist of',
                f"{path}: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
            ]),
        ):  # fmt: skip
            result = job(podFailurePolicy={"rules": [rule]})
            self.assertEqual([one[: len(text)] for one, text in zip(result, expected, strict=True)], expected)

    def test_failure_with_restarts(self) -> None:
        """A failure policy requires the restart policy Never."""
        policy = {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}]}
        path = "spec.template.spec.restartPolicy"
        text = 'only "Never" is supported when podFailurePolicy is specified'
        self.assertEqual(job("OnFailure", podFailurePolicy=policy), [f'{path}: Invalid value: "OnFailure": {text}'])
        only = [f'{path}: Required value: valid values: "OnFailure", "Never"']
        self.assertEqual(job("Always", podFailurePolicy=policy), only)


class JobTests(SynchronousTestCase):
    """Tests for numbers and names."""

    def test_many_indexes(self) -> None:
        """The number of indexes is limited, more so with a backoff limit per index."""
        many = {"completions": 100_001, "parallelism": 10_001, "backoffLimitPerIndex": 1}
        self.assertEqual(
            indexed(**many),
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are "
                "above 100000 and used with backoff limit per index",
            ],
        )
        self.assertEqual(
            [one.rpartition(": ")[2] for one in indexed(maxFailedIndexes=100_001, backoffLimitPerIndex=1)],
            ["must be less than or equal to completions", "must be less than or equal to 100000"],
        )
        self.assertEqual(
            indexed(completions=None, parallelism=1)[0],
            "spec.completions: Required value: when completion mode is Indexed",
        )

    def test_managed_by(self) -> None:
        """managedBy is a short path with a domain."""
        path = "spec.managedBy"
        self.assertEqual(job(managedBy=""), [f"{path}: Required value"])
        self.assertEqual(job(managedBy="a.b/" + "x" * 60), [f"{path}: Too long: may not be more than 63 bytes"])
        self.assertRegex(job(managedBy="A/b")[0], rf'^{path}: Invalid value: "A": a lowercase RFC 1123 subdomain ')
        self.assertRegex(job(managedBy="a/ ")[0], rf'^{path}: Invalid value: " ": Invalid path ')

    def test_mode(self) -> None:
        """Completion modes are listed in the reference's order."""
        self.assertEqual(
            job(completionMode="X"),
            ['spec.completionMode: Unsupported value: "X": supported values: "NonIndexed", "Indexed"'],
        )

    def test_labels(self) -> None:
        """Missing generated labels are reported by key, and so is a selector that was not generated."""
        template = {"metadata": {"labels": {"job-name": "x"}}, "spec": _POD}
        spec = {"template": template, "selector": {"matchLabels": {"job-name": "other"}}}
        obj = {"metadata": {"name": "j", "uid": "u"}, "spec": spec}
        path = "spec.template.metadata.labels"
        self.assertEqual(
            [str(cause) for cause in strategy_for("batch", "Job").validate(obj)][:5],
            [
                f"{path}[controller-uid]: Required value: must be 'u'",
                f'{path}[job-name]: Invalid value: {{"job-name":"x"}}: must be \'j\'',
                f"{path}[batch.kubernetes.io/controller-uid]: Required value: must be 'u'",
                f"{path}[batch.kubernetes.io/job-name]: Required value: must be 'j'",
                'spec.selector: Invalid value: {"matchLabels":{"job-name":"other"}}: `selector` not auto-generated',
            ],
        )

    def manual(self, status: Any = None, affinity: Any = None, **spec: Any) -> dict[str, Any]:
        """Return a Job with a manual selector."""
        pod = {**_POD, **({} if affinity is None else {"affinity": affinity}), **spec.pop("pod", {})}
        template = {"metadata": {"labels": {"a": "b", **spec.pop("labels", {})}}, "spec": pod}
        selector = {"matchLabels": {"a": "b"}}
        obj = made("batch", "Job", spec={"manualSelector": True, "selector": selector, "template": template, **spec})
        return {**obj, "status": status or {}}

    def update_errors(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """Return the errors of an update of a Job, without the quoted values."""
        errors = [str(cause) for cause in strategy_for("batch", "Job").validate_update(new, old)]
        return [text.partition(" value: ")[0] for text in errors]

    def test_validated_twice(self) -> None:
        """The new Job is validated twice."""
        self.assertEqual(
            self.update_errors(self.manual(), self.manual(backoffLimit=-1)), ["spec.backoffLimit: Invalid"] * 2
        )

    def test_generated_selector_on_update(self) -> None:
        """A Job that returns to a generated selector requires the generated labels, but not those with prefixes."""
        self.assertEqual(
            self.update_errors(
                self.manual(), {**(new := self.manual()), "spec": {**new["spec"], "manualSelector": False}}
            ),
            [
                "spec.template.metadata.labels[controller-uid]: Required",
                "spec.template.metadata.labels[job-name]: Required",
                "spec.selector: Invalid",
            ],
        )

    def test_suspended(self) -> None:
        """A suspended Job without pods may change scheduling directives and resources, and nothing else."""
        old = self.manual(suspend=True)
        nodes = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
        larger = [{**_POD["containers"][0], "resources": {"requests": {"cpu": "1"}}}]
        for pod in (
            {"nodeSelector": {"a": "b"}},
            {"tolerations": [{"operator": "Exists"}]},
            {"affinity": nodes},
            {"containers": larger},
        ):
            self.assertEqual(self.update_errors(old, self.manual(suspend=True, pod=pod)), [], pod)
        self.assertEqual(self.update_errors(old, self.manual(suspend=True, labels={"c": "d"})), [])
        pods = {"podAffinity": {}}
        self.assertEqual(self.update_errors(self.manual(suspend=True, affinity=nodes), old), [])
        self.assertEqual(
            self.update_errors(self.manual(suspend=True, affinity={**pods, **nodes}), old),
            ["spec.template.spec: Invalid"],
        )
        other = {"containers": [{"name": "a", "image": "other"}]}
        self.assertEqual(self.update_errors(old, self.manual(suspend=True, pod=other)), ["spec.template.spec: Invalid"])
        for status, expected in (
            ({"startTime": "2026-01-01T00:00:00Z"}, ["spec.template: Invalid"]),
            ({"active": 1}, ["spec.template: Invalid"]),
            ({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}, []),
        ):
            old = self.manual(suspend=True, status=status)
            self.assertEqual(
                self.update_errors(old, self.manual(suspend=True, pod={"containers": larger})), expected, status
            )

    def test_cron_jobs(self) -> None:
        """The metadata of job templates is not validated, and the default status of failure conditions is True."""
        policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "A"}]}]}
        spec = {"podFailurePolicy": policy, "template": {"spec": _POD}}
        template = {"metadata": {"labels": {"a b": "c d"}}, "spec": spec}
        errors = problems("batch", "CronJob", spec={"schedule": "@daily", "jobTemplate": template})
        self.assertEqual(errors, [])

    def test_generated_labels(self) -> None:
        """Labels that a Job has from its template include the generated ones; other labels do not."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
        followed = made("batch", "Job", spec={"template": template})["metadata"]["labels"]
        self.assertEqual(sorted(followed)[0], "a")
        self.assertIn("job-name", followed)
        own = made(
            "batch", "Job", metadata={"name": "x", "uid": "u", "labels": {"a": "b"}}, spec={"template": template}
        )
        self.assertEqual(own["metadata"]["labels"], {"a": "b"})

    def test_hostnames(self) -> None:
        """The pods of an indexed Job have valid hostnames."""
        for name in ("a.b", "a" * 62):
            obj = {"metadata": {"name": name, "uid": "u"}, "spec": {"completionMode": "Indexed", "completions": 3}}
            text = f"will not able to create pod with invalid DNS label: {name}-2"
            self.assertIn(
                f'metadata.name: Invalid value: "{name}": {text}',
                [str(one) for one in strategy_for("batch", "Job").validate(obj)],
            )

    def test_local_time(self) -> None:
        """The time zone Local exists, but is invalid."""
        spec = {"schedule": "@daily", "timeZone": "Local", "jobTemplate": {"spec": {"template": {"spec": _POD}}}}
        (error,) = problems("batch", "CronJob", spec=spec)
        self.assertIn("must be an explicit time zone", error)

    def test_schedules(self) -> None:
        """A stored time zone in a schedule is accepted, but not beside the field timeZone."""

        def found(schedule: str, was: str, **more: Any) -> list[str]:
            old: Any = {"spec": {"schedule": was, "jobTemplate": {}}}
            spec = {
                "schedule": schedule,
                "concurrencyPolicy": "Allow",
                "jobTemplate": {"spec": {"template": {}}},
                **more,
            }
            updates = strategy_for("batch", "CronJob").validate_update({"spec": spec}, old)
            texts = [cause.message for cause in updates]
            return [text for text in texts if "TZ" in text or "zone" in text]

        self.assertEqual(found("TZ=UTC 1 * * * *", "TZ=UTC 0 * * * *"), [])
        self.assertRegex(found("TZ=UTC 1 * * * *", "0 * * * *")[0], "use timeZone field instead")
        self.assertRegex(found("TZ=UTC 1 * * * *", "TZ=UTC 0 * * * *", timeZone="UTC")[0], "cannot use both timeZone")
        for zone in ("a//b", "../UTC", "-UTC", "Europe/Rome ", "x" * 15):
            self.assertEqual(
                found("1 * * * *", "", timeZone=zone), [f'Invalid value: "{zone}": unknown time zone {zone}']
            )


class IndexTests(SynchronousTestCase):
    """Tests for indexes in the status."""

    def test_many(self) -> None:
        """Only the intervals of thousands of millions of indexes are examined."""
        spec = {"completions": 2_000_000_000, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
        status = {"completedIndexes": "0-1999999998", "failedIndexes": "7,1999999999"}
        obj = {"spec": spec, "status": status}
        errors = strategy_for("batch", "Job").validate_status_update(obj, {"spec": spec, "status": {}})
        self.assertEqual(
            [str(cause) for cause in errors],
            [
                'status.failedIndexes: Invalid value: "7,1999999999": '
                "failedIndexes and completedIndexes overlap at index: 7"
            ],
        )

    def test_malformed(self) -> None:
        """An invalid list of indexes is rejected with Go's message."""
        for text, expected in (
            ("1-2-3", "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two "
             "parts separated by '-'"),
            ("", None),
            (",", 'cannot convert string to integer for index: ""'),
            ("9" * 5000, f'cannot convert string to integer for index: "{"9" * 5000}"'),
            ("1,1", "non-increasing order, previous: 1, current: 1"),
        ):  # fmt: skip
            error = None
            try:
                list(jobstatus.parse_intervals(text, 10))
            except ValueError as raised:
                error = str(raised)
            self.assertEqual(error, expected)


class NewJobTests(SynchronousTestCase):
    """Tests for new Jobs."""

    def test_job(self) -> None:
        """The pods of a Job terminate; its selector is generated."""
        template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        self.assertEqual(problems("batch", "Job", spec={"template": template}), [])
        self.assertEqual(
            problems("batch", "Job", spec={"template": {"spec": {"containers": [CONTAINER]}}}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        )
        chosen = {"template": template, "selector": {"matchLabels": {"a": "b"}}}
        self.assertIn("`selector` not auto-generated", problems("batch", "Job", spec=chosen)[0])
