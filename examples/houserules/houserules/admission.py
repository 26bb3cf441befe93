"""Whose pods these are, and where their images may come from."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from kubetwist.api.admission import (
    AdmissionAttributes,
    AdmissionContext,
)
from kubetwist.api.podspecs import containers, pod_template
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission


@implementer(IMutatingAdmission, IValidatingAdmission)
class HouseRules:
    """
    Pods get the label of their namespace that says which team they are of; images come from our registries only.

    Templates of pods are looked at, too, so that it is the Deployment that is refused, where somebody sees it.
    """

    name = "HouseRules"
    #: For everything else the plugin costs nothing: it is not asked.
    resources = (
        "pods",
        "pods/ephemeralcontainers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
    )

    def __init__(self, label: str, registries: tuple[str, ...]) -> None:
        self._label = label
        self._registries = registries

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: Any) -> HouseRules:
        """
        What C{--admission-control-config-file} has for us.

        @raise ValueError: It makes no sense; the server does not start, and shows the text.
        """
        if not isinstance(configuration, dict):
            configuration = {}
        unknown = sorted(set(configuration) - {"label", "registries"})
        if unknown:
            raise ValueError(f"unknown field: {', '.join(unknown)}")
        registries = configuration.get("registries") or []
        if not isinstance(registries, list) or not all(isinstance(one, str) for one in registries):
            raise ValueError("registries must be a list of prefixes of images")
        return cls(str(configuration.get("label") or "example.org/team"), tuple(registries))

    def handles(self, operation: str) -> bool:
        """Creating and updating."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """Label new pods as their namespace is. Called twice, this does nothing the second time."""
        pod = attributes.object
        if attributes.resource != "pods" or attributes.operation != "CREATE" or pod is None:
            return
        # From the server's own cache: nobody is asked over the network.
        namespace = attributes.context.view("", "namespaces", "", attributes.namespace)
        team = ((namespace or {}).get("metadata", {}).get("labels") or {}).get(self._label)
        if team:
            pod["metadata"].setdefault("labels", {}).setdefault(self._label, team)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Look at every image: of init containers and of those for debugging as well."""
        if not self._registries:
            return
        template = pod_template(attributes.group, attributes.resource, attributes.object)
        if template is None:
            return
        for container, path, kind in containers(template.spec, f"{template.path}.spec".lstrip(".")):
            image = container.get("image") or ""
            if not image.startswith(self._registries):
                attributes.annotate("houserules.example.org/refused-image", image)
                raise attributes.forbidden(f"{path}: the image {image!r} of {kind} {container['name']!r} is not ours")
