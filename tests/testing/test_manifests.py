"""Tests for L{kubetwist.testing.manifests}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import manifests
from kubetwist.testing.manifests import LoadError, Manifest, manifests_of, objects_of, read_sources

CONFIG_MAP: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

#: Data of config maps, with texts that look like other types or like separators.
values = st.dictionaries(
    st.text("abc-.", min_size=1, max_size=5),
    st.one_of(st.text(max_size=20), st.sampled_from(["---", "a\n---\nb", "n", "017", "{", "# no", "2020-01-01"])),
    max_size=3,
)


def config_map(name: str, **more: Any) -> Any:
    """Return a config map with further metadata."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}}


def names(read: list[Manifest]) -> list[str]:
    """Return the names of objects."""
    return [manifest.obj["metadata"]["name"] for manifest in read]


class TextTests(SynchronousTestCase):
    """Objects in text."""

    @given(st.lists(values, max_size=4))
    def test_streams(self, data: list[dict[str, str]]) -> None:
        """The documents of a stream are read in their order, as YAML and as JSON."""
        objects = [{**config_map(f"m{number}"), "data": one} for number, one in enumerate(data)]
        for text in (
            yaml.safe_dump_all(objects, explicit_start=True, default_style='"'),
            "# generated\n" + yaml.safe_dump_all(objects, default_style='"'),
            "\n---\n".join(map(json.dumps, objects)),
            "\n".join(map(json.dumps, objects)),
            json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1),
        ):
            self.assertEqual(objects_of(text), objects)

    def test_numbers(self) -> None:
        """The number of a document counts empty documents between separators, but not comments before the first."""
        text = "# Source: a.yaml\n---\n{apiVersion: v1, kind: A}\n--- # nothing\n\n---\napiVersion: v1\nkind: B\n"
        self.assertEqual([one.where for one in manifests_of(text)], ["document 1", "document 3"])

    def test_as_kubectl(self) -> None:
        """Values have the types that kubectl reads."""
        (obj,) = objects_of("{apiVersion: v1, kind: A, x: 2020-01-01T00:00:00Z, o: 017, b: on, 8: 1}")
        self.assertEqual(
            obj, {"apiVersion": "v1", "kind": "A", "x": "2020-01-01T00:00:00Z", "o": 15, "b": True, "8": 1}
        )

    def test_lists(self) -> None:
        """Lists are split into their items, which may lack the kind in the list of one kind."""
        text = '{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}'
        self.assertEqual(manifests_of(text), [Manifest(CONFIG_MAP, "document 1, item 1")])
        with self.assertRaisesRegex(LoadError, "document 1, item 2: not an object"):
            manifests_of(json.dumps({"apiVersion": "v1", "kind": "List", "items": [CONFIG_MAP, 1]}))

    def test_malformed(self) -> None:
        """The error about a document names its number and the reason."""
        bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n"
        bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 10))
        for text, message in (
            ("- 1", "document 1: not an object with kind and apiVersion"),
            ("a: 1\n---\nb: [", "document 1: not an object"),
            ("{apiVersion: v1, kind: A}\n---\nb: [", "document 2: yaml: line"),
            ("apiVersion: v1\nkind: A\nkind: B\n", '(?s)document 1: .*key "kind" already set in map'),
            ('{"apiVersion": "v1", "kind": "A", "kind": "B"}', '(?s)document 1: .*key "kind" already set in map'),
            ("{apiVersion: v1, kind: A, metadata: 1}", "document 1: metadata is not an object"),
            (bomb, "document 1: yaml: document contains excessive aliasing"),
        ):
            with self.assertRaisesRegex(LoadError, message):
                manifests_of(text)

    def test_hooks(self) -> None:
        """Of a rendered Helm chart's hooks, those are read that exist after an installation."""
        for hook, policy, read in (
            ("pre-install", "", True),
            ("post-install, post-upgrade", "before-hook-creation", True),
            ("test", "", False),
            ("pre-upgrade,pre-rollback", "", False),
            ("post-delete", "", False),
            ("pre-install", "before-hook-creation,hook-succeeded", False),
            ("pre-install", "hook-failed", True),
        ):
            annotations = {"helm.sh/hook": hook, "helm.sh/hook-delete-policy": policy}
            obj = config_map("a", annotations=annotations)
            self.assertEqual(bool(manifests_of(yaml.safe_dump(obj))), read, annotations)
            # It existed in the cluster of a dump, and objects that code passes are loaded in any case.
            self.assertTrue(manifests_of(yaml.safe_dump(config_map("a", annotations=annotations, uid="u"))))
            self.assertTrue(manifests_of([obj]))


class PathTests(SynchronousTestCase):
    """Objects in files."""

    def setUp(self) -> None:
        """Create a folder."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()

    def write(self, path: str, *found: str) -> str:
        """Write config maps with these names into a file of the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump_all(map(config_map, found)))
        return str(file)

    def read(self, *paths: str) -> list[str]:
        """Return the names of the objects of paths below the folder."""
        return names(read_sources([str(self.folder / path) for path in paths]))

    def test_folders(self) -> None:
        """A folder is read with its subfolders, in the order of names, without hidden and other files."""
        for path in ("b.yml", "a/z.yaml", "c.json", "a/y/x.yaml", "README.md", ".hidden.yaml", ".git/d.yaml"):
            self.write(path, path)
        self.assertEqual(self.read("."), ["b.yml", "c.json", "a/z.yaml", "a/y/x.yaml"])
        self.assertEqual(self.read("a", "README.md"), ["a/z.yaml", "a/y/x.yaml", "README.md"])

    def test_patterns(self) -> None:
        """A pattern matches folders and manifests; a file whose name has its characters is that file."""
        for path in ("one/a.yaml", "two/b.yaml", "two/c.txt", "[d].yaml", "d.yaml"):
            self.write(path, path)
        self.assertEqual(self.read("*/*"), ["one/a.yaml", "two/b.yaml"])
        self.assertEqual(self.read("t*"), ["two/b.yaml"])
        self.assertEqual(self.read("**/b*"), ["two/b.yaml"])
        self.assertEqual(self.read("[d].yaml"), ["[d].yaml"])
        with self.assertRaisesRegex(LoadError, r"two/\*\.txt: matches no folder and no .yaml, .yml, .json file"):
            self.read("two/*.txt")

    def test_sources(self) -> None:
        """Strings are paths; paths, objects and manifests may be mixed; one path needs no list."""
        file = self.write("a.yaml", "a")
        obj = config_map("b")
        read = read_sources([file, Path(file), obj, Manifest(config_map("c"), "there")])
        self.assertEqual(names(read), ["a", "a", "b", "c"])
        self.assertEqual([one.where for one in read], [f"{file}, document 1"] * 2 + ["object 3", "there"])
        self.assertIsNot(read[2].obj, obj)
        self.assertEqual(names(read_sources(file)), names(manifests_of(Path(file))))
        self.assertEqual(read_sources([]), [])

    def test_unreadable(self) -> None:
        """The error about a path names it and the reason."""
        (self.folder / "empty").mkdir()
        self.write("chart/Chart.yaml", "a")
        self.write("tree/a/kustomization.yaml", "a")
        (self.folder / "latin.yaml").write_bytes(b"\xe9")
        for path, message in (
            ("missing.yaml", "missing.yaml: No such file or directory"),
            ("empty", "empty: has no .yaml, .yml, .json file"),
            ("chart", "chart is a Helm chart; load the output of `helm template`"),
            ("tree", "tree has the Kustomize directory .*tree/a .*; name the Kustomize directories to load"),
            ("latin.yaml", "latin.yaml: not UTF-8"),
        ):
            with self.assertRaisesRegex(LoadError, message):
                self.read(path)
        for source, message in (
            ("https://example.org/a.yaml", "https://example.org/a.yaml: URLs are not loaded; download the file"),
            ("apiVersion: v1\nkind: A", "not a path: 'apiVersion: v1"),
        ):
            with self.assertRaisesRegex(LoadError, message):
                read_sources(source)

    def test_large(self) -> None:
        """Files have a maximum size."""
        self.patch(manifests, "MAX_BYTES", 1 << 20)
        (self.folder / "large.yaml").write_bytes(b"#" * (1 << 20) + b"#")
        with self.assertRaisesRegex(LoadError, "large.yaml: has more than 1 MiB"):
            self.read("large.yaml")
