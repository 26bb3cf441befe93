"""The PodSecurity admission plugin: passes objects to the evaluator and reports its results."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import field, frozen

from twisted.internet.task import deferLater
from zope.interface import implementer

from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.podspecs import TEMPLATES, pod_template
from ...api.resource import GroupKind
from ...interfaces import IMeasuredAdmission, IValidatingAdmission
from ...metrics.registry import MetricSnapshot
from ..pluginconfig import release_minor
from .configuration import load
from .evaluation import (
    IGNORED_POD_SUBRESOURCES,
    Evaluation,
    PodSecurityEvaluator,
)
from .existing import NAMESPACE_MAX_PODS_TO_CHECK, NAMESPACE_POD_CHECK_TIMEOUT, ExistingPods
from .levels import PREFIX, LevelVersion
from .metrics import PodSecurityMetrics
from .standards import CheckRegistry

if TYPE_CHECKING:
    from ...api.admission import AdmissionContext

#: Number of pods after which the check yields to the reactor: a few milliseconds of work.
_SLICE: Final = 50
_KINDS: Final = tuple(
    f"{resource}.{group}" if group else resource for group, resource in TEMPLATES if resource != "pods"
)


@implementer(IMeasuredAdmission, IValidatingAdmission)
@frozen
class PodSecurity:
    """See kubernetes, C{plugin/pkg/admission/security/podsecurity/admission.go}."""

    name: ClassVar[str] = "PodSecurity"
    # All subresources of pods: unknown subresources are evaluated.
    resources: ClassVar[tuple[str, ...]] = ("namespaces", "pods/*", *_KINDS)
    evaluator: PodSecurityEvaluator
    metrics: PodSecurityMetrics = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "metrics", PodSecurityMetrics(self.evaluator.standards.newest))

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the metrics of evaluations."""
        return self.metrics.collect()

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodSecurity:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        relaxed = server.features.enabled("UserNamespacesPodSecurityStandards")
        registry = CheckRegistry(release_minor(server), relaxed=relaxed)
        return cls(PodSecurityEvaluator(load(configuration), registry))

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        if attributes.resource == "namespaces":
            return self._namespace(attributes)
        pod = attributes.resource == "pods" and not attributes.group
        if attributes.subresource in IGNORED_POD_SUBRESOURCES if pod else attributes.subresource:
            return None
        if attributes.computing is not None:
            return attributes.computing(self._evaluate_object, attributes, pod)
        self._evaluate_object(attributes, pod)
        return None

    def _evaluate_object(self, attributes: AdmissionAttributes, pod: bool) -> None:
        """
        Evaluate a pod or, if C{pod} is false, the pod template of an object.

        @raise APIStatusError: The pod is forbidden (403).
        """
        evaluation = self.evaluator.exempt(attributes.namespace, attributes.user.name)
        if evaluation is None:
            evaluation = self._pod(attributes) if pod else self._template(attributes)
        _report(attributes, evaluation)
        request_labels = attributes.operation.lower(), "pod" if pod else "controller", attributes.subresource
        if "exempt" in evaluation.audit_annotations:
            self.metrics.exempted(request_labels)
        for mode, level_version, allowed in evaluation.evaluations:
            self.metrics.evaluated(mode, level_version, allowed, request_labels)
        if evaluation.denial_message:
            raise attributes.forbidden(evaluation.denial_message)

    def _pod(self, attributes: AdmissionAttributes) -> Evaluation:
        labels = _labels(attributes)
        if labels is None:
            missing = f"failed to lookup namespace {quoted(attributes.namespace)}"
            attributes.annotate(f"{PREFIX}error", f"Internal error occurred: {missing}: {_not_found(attributes)}")
            raise APIStatusError.internal(missing)
        assert attributes.object is not None
        # The old object is decoded only if it is needed.
        evaluation = self.evaluator.fully_privileged_result(labels)
        if evaluation is not None:
            return evaluation
        return self.evaluator.pod(labels, attributes.object, attributes.old_object)

    def _template(self, attributes: AdmissionAttributes) -> Evaluation:
        labels = _labels(attributes)
        if labels is None:
            message = f"failed to lookup namespace {quoted(attributes.namespace)}: {_not_found(attributes)}"
            return Evaluation(audit_annotations={"error": message})
        template = pod_template(attributes.group, attributes.resource, attributes.object)
        return self.evaluator.template(labels, template)

    def _namespace(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        assert attributes.object is not None
        old = attributes.old_object if attributes.operation == "UPDATE" else None
        before = None if old is None else old["metadata"].get("labels") or {}
        labels = attributes.object["metadata"].get("labels") or {}
        if labels == before:
            return None
        evaluation = self.evaluator.namespace(attributes.name, labels, before)
        if evaluation.causes:
            raise APIStatusError.invalid(GroupKind("", "Namespace"), attributes.name, evaluation.causes)
        _report(attributes, evaluation)
        return (
            None
            if evaluation.recheck_existing_pods_at is None
            else self._warn_of_existing_pods(attributes, evaluation.recheck_existing_pods_at)
        )

    async def _warn_of_existing_pods(self, attributes: AdmissionAttributes, enforced: LevelVersion) -> None:
        """Warn about existing pods that violate the new enforce level."""
        context = attributes.context
        loaders = context.list_lazy("", "pods", attributes.name)
        deadline = context.reactor.seconds() + NAMESPACE_POD_CHECK_TIMEOUT
        existing = ExistingPods(self.evaluator.standards, enforced, self.evaluator.configuration.runtime_classes)
        for start in range(0, len(loaders), _SLICE):
            if start:
                await deferLater(context.reactor, 0, _do_nothing)
            for loader in loaders[start : start + _SLICE]:
                existing.add(loader)
        prioritized = existing.prioritized()
        for start in range(0, min(len(prioritized), NAMESPACE_MAX_PODS_TO_CHECK), _SLICE):
            if start:
                await deferLater(context.reactor, 0, _do_nothing)
            for loader in prioritized[start : min(start + _SLICE, NAMESPACE_MAX_PODS_TO_CHECK)]:
                existing.check(loader())
            if context.reactor.seconds() > deadline:
                break
        for text in existing.warnings(attributes.name, len(prioritized)):
            attributes.warn(text)


def _do_nothing() -> None:
    """Do nothing; called to yield to the reactor."""


def _labels(attributes: AdmissionAttributes) -> Mapping[str, str] | None:
    """Return the labels of the namespace; L{None} if there is none."""
    namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
    return None if namespace is None else namespace["metadata"].get("labels") or {}


def _not_found(attributes: AdmissionAttributes) -> str:
    return f"namespaces {quoted(attributes.namespace)} not found"


def _report(attributes: AdmissionAttributes, evaluation: Evaluation) -> None:
    for text in evaluation.warnings:
        attributes.warn(text)
    for key, value in evaluation.audit_annotations.items():
        attributes.annotate(PREFIX + key, value)
