import assert from "node:assert/strict";
import test from "node:test";

import { Drafts, MAX_DRAFTS, MAX_LENGTH, PREFIX, mayBeSecret } from "../../../kubetwist/ui/static/lib/drafts.js";
import { skeleton, templatesOf } from "../../../kubetwist/ui/static/lib/templates.js";
import { Schemas } from "../../../kubetwist/ui/static/lib/openapi.js";
import { load } from "../../../kubetwist/ui/static/vendor/js-yaml/js-yaml.mjs";

/** A storage with a limited number of characters. */
class Store {
  constructor(limit = Infinity) { this.limit = limit; this.items = new Map(); }
  get length() { return this.items.size; }
  key(index) { return [...this.items.keys()][index] ?? null; }
  getItem(name) { return this.items.get(name) ?? null; }
  removeItem(name) { this.items.delete(name); }
  setItem(name, value) {
    const size = [...this.items].reduce((sum, [key, one]) => sum + (key === name ? 0 : one.length), value.length);
    if (size > this.limit) throw new Error("QuotaExceededError");
    this.items.set(name, value);
  }
}

const draft = (text, time = 1) => ({ text, version: "5", time });

test("a draft is read by its user only", () => {
  const store = new Store();
  assert.equal(new Drafts(store, "jane").write("#/a", draft("x")), true);
  assert.deepEqual(new Drafts(store, "jane").read("#/a"), draft("x"));
  assert.equal(new Drafts(store, "joe").read("#/a"), null);
  new Drafts(store, "jane").remove("#/a");
  assert.equal(store.length, 0);
});

test("the oldest drafts are removed, and nothing else", () => {
  const store = new Store(), drafts = new Drafts(store, "jane");
  store.setItem("kubetwist-key", "k");
  for (let time = 0; time < MAX_DRAFTS + 5; time++) drafts.write(`#/${time}`, draft("x", time));
  assert.equal(store.length, MAX_DRAFTS + 1);
  assert.equal(drafts.read("#/4"), null);
  assert.ok(drafts.read("#/5"));
  drafts.write("#/9", draft("again", 100));
  assert.ok(drafts.read("#/5"));
});

test("a full storage loses the oldest drafts, or keeps none", () => {
  const drafts = new Drafts(new Store(300), "jane");
  drafts.write("#/1", draft("a".repeat(100), 1));
  drafts.write("#/2", draft("b".repeat(100), 2));
  assert.equal(drafts.write("#/3", draft("c".repeat(100), 3)), true);
  assert.equal(drafts.read("#/1"), null);
  assert.equal(drafts.write("#/4", draft("d".repeat(500), 4)), false);
});

test("long texts and Secrets are not kept, and replace no older draft", () => {
  const drafts = new Drafts(new Store(), "jane");
  drafts.write("#/a", draft("x"));
  assert.equal(drafts.write("#/a", draft("x".repeat(MAX_LENGTH + 1))), false);
  assert.equal(drafts.read("#/a"), null);
  for (const text of ["kind: Secret\n", '{"kind": "Secret"}', "kind: SecretList", "a: 1\n---\nkind:  'Secret'"]) {
    assert.equal(mayBeSecret(text), true);
    assert.equal(drafts.write("#/a", draft(text)), false);
  }
  for (const text of ["kind: SecretStore", "kind: ConfigMap", "secret: 1"]) assert.equal(mayBeSecret(text), false, text);
});

test("what is not a draft is ignored", () => {
  const store = new Store();
  store.setItem(`${PREFIX}jane:#/a`, "not JSON");
  assert.equal(new Drafts(store, "jane").read("#/a"), null);
  assert.equal(new Drafts(store, "jane").write("#/b", draft("x")), true);
});

const CRD = { group: "g", version: "v1", resource: "things", kind: "Thing", namespaced: true, verbs: [], shortNames: [], subresources: [], stale: false };

test("a skeleton has the required fields, with valid values", () => {
  const spec = {
    type: "object", required: ["size", "color", "items", "on", "deep", "given"], properties: {
      size: { type: "integer", minimum: 3 }, color: { type: "string", enum: ["red"] }, items: { type: "array", minItems: 1, items: { type: "string" } }, on: { type: "boolean" }, other: { type: "string" },
      deep: { type: "object", required: ["inner"], properties: { inner: { type: "string" } } }, given: { type: "string", default: "x" },
    },
  };
  const schemas = new Schemas({ components: { schemas: { Thing: { "x-kubernetes-group-version-kind": [{ group: "g", version: "v1", kind: "Thing" }], type: "object", required: ["spec"], properties: { spec, status: { type: "object" } } } } } });
  const found = load(skeleton(CRD, "here", schemas));
  assert.deepEqual(found, { apiVersion: "g/v1", kind: "Thing", metadata: { name: null, namespace: "here" }, spec: { size: 3, color: "red", items: [""], on: false, deep: { inner: "" } } });
  assert.equal(skeleton(CRD, "here", null), "apiVersion: g/v1\nkind: Thing\nmetadata:\n  name: \n  namespace: here\n");
});

test("a skeleton of a recursive schema ends", () => {
  const node = { type: "object", required: ["next"], properties: { next: { $ref: "#/components/schemas/Node" } } };
  const schemas = new Schemas({ components: { schemas: { Node: node, Thing: { "x-kubernetes-group-version-kind": [{ group: "g", version: "v1", kind: "Thing" }], type: "object", properties: { spec: { $ref: "#/components/schemas/Node" } } } } } });
  assert.ok(skeleton(CRD, "here", schemas).length < 1000);
});

test("templates are YAML of their kind", () => {
  const deployments = { ...CRD, group: "apps", resource: "deployments", kind: "Deployment" };
  const templates = templatesOf(deployments, "here");
  assert.ok(templates.length > 1);
  for (const { title, text } of templates) {
    const found = load(text);
    assert.deepEqual([found.kind, found.metadata.namespace, title.length > 0], ["Deployment", "here", true]);
  }
  assert.deepEqual(templatesOf({ ...CRD, resource: "constructor" }, ""), []);
});
