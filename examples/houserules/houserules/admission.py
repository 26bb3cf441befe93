"""An admission plugin: team labels of pods, and allowed image registries."""

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
    Copies the team label of the namespace to pods, and allows only images of the configured registries.

    Pod templates are validated as well, so that a Deployment is refused immediately and not its pods later.
    """

    name = "HouseRules"
    #: The plugin is not called for other resources.
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
        Create the plugin from its section of C{--admission-control-config-file}.

        @raise ValueError: The configuration is invalid. The server does not start, and prints the text.
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
        """Return whether the operation is CREATE or UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """Copy the label of the namespace to new pods. Idempotent: a second call changes nothing."""
        pod = attributes.object
        if attributes.resource != "pods" or attributes.operation != "CREATE" or pod is None:
            return
        # From the server's watch cache, without I/O.
        namespace = attributes.context.get_decoded("", "namespaces", "", attributes.namespace)
        team = ((namespace or {}).get("metadata", {}).get("labels") or {}).get(self._label)
        if team:
            pod["metadata"].setdefault("labels", {}).setdefault(self._label, team)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Check every image, also of init and ephemeral containers."""
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
