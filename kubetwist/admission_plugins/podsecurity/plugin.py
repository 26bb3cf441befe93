"""The admission plugin: brings the standards what they judge, and the client what they say."""

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
from ..pluginconfig import minor
from .configuration import load
from .evaluation import (
    IGNORED,
    Judge,
    Judgement,
)
from .existing import LONGEST, MOST_PODS, ExistingPods
from .levels import PREFIX, LevelVersion
from .metrics import PodSecurityMetrics
from .standards import Standards

if TYPE_CHECKING:
    from ...api.admission import AdmissionContext

#: After how many pods others get a turn: a few milliseconds' work.
_SLICE: Final = 50
_KINDS: Final = tuple(
    f"{resource}.{group}" if group else resource for group, resource in TEMPLATES if resource != "pods"
)


@implementer(IMeasuredAdmission, IValidatingAdmission)
@frozen
class PodSecurity:
    """See kubernetes, C{plugin/pkg/admission/security/podsecurity/admission.go}."""

    name: ClassVar[str] = "PodSecurity"
    # All subresources of pods: one that is not known to be harmless is judged.
    resources: ClassVar[tuple[str, ...]] = ("namespaces", "pods/*", *_KINDS)
    judge: Judge
    metrics: PodSecurityMetrics = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "metrics", PodSecurityMetrics(self.judge.standards.newest))

    def collect(self) -> Iterator[MetricSnapshot]:
        """What is counted of judgements."""
        return self.metrics.collect()

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> PodSecurity:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(Judge(load(configuration), Standards(minor(server))))

    def handles(self, operation: str) -> bool:
        """Creating and updating."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        if attributes.resource == "namespaces":
            return self._namespace(attributes)
        pod = attributes.resource == "pods" and not attributes.group
        if attributes.subresource in IGNORED if pod else attributes.subresource:
            return None
        if attributes.computing is not None:
            return attributes.computing(self._decide, attributes, pod)
        self._decide(attributes, pod)
        return None

    def _decide(self, attributes: AdmissionAttributes, pod: bool) -> None:
        """
        Evaluate a pod or, if C{pod} is false, the pod template of an object.

        @raise APIStatusError: The pod is forbidden (403).
        """
        judgement = self.judge.exempt(attributes.namespace, attributes.user.name)
        if judgement is None:
            judgement = self._pod(attributes) if pod else self._template(attributes)
        _tell(attributes, judgement)
        about = attributes.operation.lower(), "pod" if pod else "controller", attributes.subresource
        if "exempt" in judgement.notes:
            self.metrics.exempted(about)
        for mode, wanted, allowed in judgement.decided:
            self.metrics.evaluated(mode, wanted, allowed, about)
        if judgement.refusal:
            raise attributes.forbidden(judgement.refusal)

    def _pod(self, attributes: AdmissionAttributes) -> Judgement:
        labels = _labels(attributes)
        if labels is None:
            missing = f"failed to lookup namespace {quoted(attributes.namespace)}"
            attributes.annotate(f"{PREFIX}error", f"Internal error occurred: {missing}: {_not_found(attributes)}")
            raise APIStatusError.internal(missing)
        assert attributes.object is not None
        # What was there before is asked for only where it decides.
        settled = self.judge.settled(labels)
        if settled is not None:
            return settled
        return self.judge.pod(labels, attributes.object, attributes.old_object)

    def _template(self, attributes: AdmissionAttributes) -> Judgement:
        labels = _labels(attributes)
        if labels is None:
            why = f"failed to lookup namespace {quoted(attributes.namespace)}: {_not_found(attributes)}"
            return Judgement(notes={"error": why})
        template = pod_template(attributes.group, attributes.resource, attributes.object)
        return self.judge.template(labels, template)

    def _namespace(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        assert attributes.object is not None
        old = attributes.old_object if attributes.operation == "UPDATE" else None
        before = None if old is None else old["metadata"].get("labels") or {}
        labels = attributes.object["metadata"].get("labels") or {}
        if labels == before:
            return None
        judgement = self.judge.namespace(attributes.name, labels, before)
        if judgement.causes:
            raise APIStatusError.invalid(GroupKind("", "Namespace"), attributes.name, judgement.causes)
        _tell(attributes, judgement)
        return None if judgement.enforced is None else self._look(attributes, judgement.enforced)

    async def _look(self, attributes: AdmissionAttributes, enforced: LevelVersion) -> None:
        """Warn of pods that are there and would be refused now."""
        context = attributes.context
        loaders = context.loaders("", "pods", attributes.name)
        until = context.reactor.seconds() + LONGEST
        existing = ExistingPods(self.judge.standards, enforced, self.judge.configuration.runtime_classes)
        for start in range(0, len(loaders), _SLICE):
            if start:
                await deferLater(context.reactor, 0, _nothing)
            for loader in loaders[start : start + _SLICE]:
                existing.add(loader)
        chosen = existing.by_promise()
        for start in range(0, min(len(chosen), MOST_PODS), _SLICE):
            if start:
                await deferLater(context.reactor, 0, _nothing)
            for loader in chosen[start : min(start + _SLICE, MOST_PODS)]:
                existing.look(loader())
            if context.reactor.seconds() > until:
                break
        for text in existing.warnings(attributes.name, len(chosen)):
            attributes.warn(text)


def _nothing() -> None:
    """Comes when all others had their turn."""


def _labels(attributes: AdmissionAttributes) -> Mapping[str, str] | None:
    """The labels of the namespace; L{None} if there is none."""
    namespace = attributes.context.view("", "namespaces", "", attributes.namespace)
    return None if namespace is None else namespace["metadata"].get("labels") or {}


def _not_found(attributes: AdmissionAttributes) -> str:
    return f"namespaces {quoted(attributes.namespace)} not found"


def _tell(attributes: AdmissionAttributes, judgement: Judgement) -> None:
    for text in judgement.warnings:
        attributes.warn(text)
    for key, value in judgement.notes.items():
        attributes.annotate(PREFIX + key, value)
