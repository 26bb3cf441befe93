"""Tests for L{kubetwist.api.podspecs}."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import orjson

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.podspecs import CONTAINER_LISTS, TEMPLATES, containers, declared_containers, pod_template
from kubetwist.cli.flags.kubetwist import DEFAULT_KUBERNETES_VERSION
from kubetwist.registry.kinds import kinds_for
from kubetwist.schema.definitions import Definitions


class PodSpecTests(SynchronousTestCase):
    """Tests for pods in objects, and containers in pods."""

    def test_containers(self) -> None:
        """All types of containers are returned with their paths."""
        spec = {
            "containers": [{"name": "a"}],
            "initContainers": [{"name": "b"}],
            "ephemeralContainers": [{"name": "c"}],
        }
        result = [(container["name"], path, kind) for container, path, kind in containers(spec)]
        self.assertEqual(
            result,
            [
                ("b", "spec.initContainers[0]", "init container"),
                ("a", "spec.containers[0]", "container"),
                ("c", "spec.ephemeralContainers[0]", "ephemeral container"),
            ],
        )
        self.assertEqual([path for _, path, _ in containers(spec, "x")][1], "x.containers[0]")
        self.assertEqual(list(containers({"initContainers": None})), [])

    def test_declared(self) -> None:
        """A pod is created with all containers except for ephemeral ones."""
        spec = {
            "containers": [{"name": "a"}],
            "initContainers": [{"name": "b"}],
            "ephemeralContainers": [{"name": "c"}],
        }
        self.assertEqual(
            [path for _, path, _ in declared_containers(spec)], ["spec.initContainers[0]", "spec.containers[0]"]
        )

    def test_all_lists(self) -> None:
        """CVE-2023-2727 and similar: no release has a list of containers that is missed."""
        for version in ("1.25", "1.30", DEFAULT_KUBERNETES_VERSION):
            schemas = {name: orjson.loads(text) for name, text in Definitions.load(version)._encoded.items()}
            (spec,) = (schema for name, schema in schemas.items() if name.endswith(".core.v1.PodSpec"))
            lists = {
                field
                for field, schema in spec["properties"].items()
                if re.search(r"Container$", str((schema.get("items") or {}).get("$ref", "")))
            }
            self.assertEqual(lists, {field for field, _ in CONTAINER_LISTS}, version)

    def test_plugins_name_no_container_lists(self) -> None:
        """Admission plugins and their shared modules do not name lists of containers."""
        package = Path(kubetwist.__file__).parent
        known = {field for field, _ in CONTAINER_LISTS} - {"containers"}
        paths = [*(package / "admission_plugins").rglob("*.py"), *(package / "admission").rglob("*.py")]
        modules = ("pod/references.py", "pod/qos.py", "resourcequota/usage.py", "node/graph.py")
        paths += [package / "registry" / "core" / name for name in modules]
        self.assertGreater(len(paths), 50)
        for path in paths:
            texts = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            self.assertEqual(known & texts, set(), path)

    def test_templates(self) -> None:
        """The path of the pod template is known for every kind that has one."""
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
        for group, resource, obj, path in (
            ("", "pods", pod, ""),
            ("", "podtemplates", {"template": pod}, "template"),
            ("apps", "deployments", {"spec": {"template": pod}}, "spec.template"),
            (
                "batch",
                "cronjobs",
                {"spec": {"jobTemplate": {"spec": {"template": pod}}}},
                "spec.jobTemplate.spec.template",
            ),
        ):
            result = pod_template(group, resource, obj)
            assert result is not None
            self.assertEqual((result.metadata, result.spec, result.path), (pod["metadata"], pod["spec"], path))
        self.assertIsNone(pod_template("", "configmaps", pod))
        self.assertIsNone(pod_template("", "replicationcontrollers", {"spec": {}}))
        self.assertIsNone(pod_template("", "pods", None))

    def test_complete(self) -> None:
        """The table has exactly the built-in kinds with a pod template."""
        definitions = Definitions.load("1.36")
        schemas = {name: orjson.loads(text) for name, text in definitions._encoded.items()}

        def references_pod_spec(name: str, seen: set[str]) -> bool:
            if name.endswith(".PodSpec"):
                return True
            if name in seen:
                return False
            seen.add(name)
            references = re.findall(r"#/\$defs/([\w.-]+)", orjson.dumps(schemas[name]).decode())
            return any(references_pod_spec(one, seen) for one in references)

        kinds = [info for info in kinds_for(definitions.gvks(), FeatureGates()) if info.stored]
        kinds_with_pods = {
            (one.group, one.resource)
            for one in kinds
            if references_pod_spec(definitions.definition_of(one.storage_kind), set())
        }
        self.assertEqual(kinds_with_pods, set(TEMPLATES))
