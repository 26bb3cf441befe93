"""A server with an object of every kind that plugins read."""

from __future__ import annotations

from tests.admission_plugins.fakes import Context


def cluster() -> Context:
    """Return a server with an object for every plugin."""
    context = Context()
    context.add("", "namespaces", {"metadata": {"name": "ns"}})
    context.add("", "serviceaccounts", {"metadata": {"name": "default", "namespace": "ns"}})
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    context.add("", "limitranges", {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": [limit]}})
    context.add("", "nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}})
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "box", "operator": "Exists"}]}
    context.add(
        "node.k8s.io",
        "runtimeclasses",
        {"metadata": {"name": "box"}, "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": scheduling},
    )
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}, "creationTimestamp": "x"}
    context.add("storage.k8s.io", "storageclasses", {"metadata": {"name": "s", **default}})
    default = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}, "creationTimestamp": "x"}
    context.add("networking.k8s.io", "ingressclasses", {"metadata": {"name": "i", **default}})
    usual = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True, "preemptionPolicy": "Never"}
    context.add("scheduling.k8s.io", "priorityclasses", usual)
    return context
