import assert from "node:assert/strict";
import test from "node:test";

import { definedKinds, manifestsOf, namespacesOf, rankOf } from "../../../kubetwist/ui/static/lib/manifests.js";

const names = (text) => manifestsOf("f", text).map(({ object, error, line }) => (object ? `${object.kind} ${object.metadata.name} ${line}` : `${line} ${error}`));
const one = (kind, name, more = "") => `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n${more}`;

test("documents of YAML and JSON, and lists of lists, become objects", () => {
  assert.deepEqual(names(`# comment\n${one("A", "a")}---\n---\n${one("B", "b")}`), ["A a 2", "B b 8"]);
  const object = (name) => ({ apiVersion: "v1", kind: "A", metadata: { name } });
  assert.deepEqual(names(JSON.stringify({ apiVersion: "v1", kind: "List", items: [object("x"), { kind: "List", items: [object("y")] }] })), ["A x 1", "A y 1"]);
  assert.deepEqual(names(JSON.stringify([object("x"), object("y")], null, 2)), ["A x 1", "A y 1"]);
  assert.deepEqual(names(JSON.stringify({ apiVersion: "v1", kind: "AList", items: [{ metadata: { name: "x" } }] })), ["A x 1"]);
  assert.deepEqual(names(""), []);
});

test("a document that is not valid does not hide others", () => {
  const found = names(`${one("A", "a")}---\na: [\n---\n${one("B", "b")}---\njust text\n---\nkind: C\napiVersion: v1\n---\n${one("D", "d", "n: 12345678901234567890\n")}`);
  assert.equal(found.length, 6);
  assert.deepEqual([found[0], found[2]], ["A a 1", "B b 8"]);
  assert.match(found[1], /^6 .*in line \d+$/);
  assert.match(found[3], /no apiVersion and kind/);
  assert.match(found[4], /no metadata.name/);
  assert.match(found[5], /exactly/);
});

test("fields of the server are not applied", () => {
  const [{ object }] = manifestsOf("f", one("A", "a", "  uid: u\n  resourceVersion: '5'\n  labels:\n    a: b\n"));
  assert.deepEqual(object.metadata, { name: "a", labels: { a: "b" } });
});

test("what other objects need comes first", () => {
  const kinds = ["ValidatingWebhookConfiguration", "Deployment", "Thing", "RoleBinding", "ConfigMap", "CustomResourceDefinition", "Namespace"];
  const sorted = kinds.map((kind) => ({ kind })).sort((a, b) => rankOf(a) - rankOf(b)).map(({ kind }) => kind);
  assert.deepEqual(sorted, ["CustomResourceDefinition", "Namespace", "ConfigMap", "RoleBinding", "Deployment", "Thing", "ValidatingWebhookConfiguration"]);
  const definition = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", spec: { group: "g", names: { kind: "Thing" } } };
  assert.deepEqual([...definedKinds([definition, { apiVersion: "v1", kind: "A" }, { ...definition, spec: undefined }])], ["g Thing", "undefined undefined"]);
  assert.deepEqual([...namespacesOf([{ apiVersion: "v1", kind: "Namespace", metadata: { name: "n" } }, { apiVersion: "x/v1", kind: "Namespace", metadata: { name: "m" } }])], ["n"]);
});
