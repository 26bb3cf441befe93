import assert from "node:assert/strict";
import test from "node:test";

import { listAddress, objectAddress, optional, parseAddress, whyAddress } from "../../../kubetwist/ui/static/lib/addresses.js";
import { apiVersionOf, matches, pathOf, questionOf, resourcesOf } from "../../../kubetwist/ui/static/lib/resources.js";
import { forSeeds } from "./random.js";

const PODS = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true, verbs: ["list"], shortNames: ["po"], subresources: ["log"], stale: false };

test("resourcesOf takes the preferred version of a resource", () => {
  const pods = { resource: "pods", responseKind: { kind: "Pod" }, scope: "Namespaced", verbs: ["list"], shortNames: ["po"], subresources: [{ subresource: "log" }] };
  const document = { items: [
    { metadata: {}, versions: [{ version: "v1", resources: [pods, { resource: "odd" }] }] },
    { metadata: { name: "a.io" }, versions: [{ version: "v2", freshness: "Stale", resources: [{ resource: "x", responseKind: { kind: "X" }, scope: "Cluster" }] }, { version: "v1", resources: [{ resource: "x", responseKind: { kind: "X" } }] }] },
  ] };
  const x = { group: "a.io", version: "v2", resource: "x", kind: "X", namespaced: false, verbs: [], shortNames: [], subresources: [], stale: true };
  assert.deepEqual(resourcesOf(document), [PODS, x]);
  assert.deepEqual(resourcesOf({}), []);
});

test("pathOf quotes names", () => {
  assert.equal(pathOf(PODS), "/api/v1/pods");
  assert.equal(pathOf(PODS, "a b", "../x"), "/api/v1/namespaces/a%20b/pods/..%2Fx");
  assert.equal(pathOf({ ...PODS, group: "apps", namespaced: false }, "ns", "x"), "/apis/apps/v1/pods/x");
  assert.equal(apiVersionOf(PODS), "v1");
  assert.equal(apiVersionOf({ ...PODS, group: "apps" }), "apps/v1");
});

test("questionOf names only what the request has", () => {
  assert.deepEqual(questionOf("get", PODS, "a", "b"), { verb: "get", resource: "pods", apiGroup: "", namespace: "a", name: "b" });
  assert.deepEqual(questionOf("list", { ...PODS, namespaced: false }, "a"), { verb: "list", resource: "pods", apiGroup: "" });
});

test("resources are found by all their names", () => {
  for (const wanted of ["", "pod", "po", "ods"]) assert.ok(matches(PODS, wanted));
  assert.equal(matches(PODS, "svc"), false);
});

test("addresses are read as they were written", () => {
  forSeeds(300, (random) => {
    const name = Array.from({ length: 1 + Math.floor(random() * 6) }, () => "a/%?#&é -"[Math.floor(random() * 9)]).join("");
    const { parts } = parseAddress(objectAddress(PODS, name, name, "yaml"));
    assert.deepEqual(parts, ["object", "-", "pods", name, name, "yaml"]);
  });
  assert.equal(optional("-"), "");
  assert.equal(listAddress({ ...PODS, group: "apps" }, "new"), "#/new/apps/pods");
  assert.deepEqual([...parseAddress(whyAddress({ verb: "get" })).query], [["verb", "get"]]);
  assert.deepEqual(parseAddress("#/list/%").parts, [""]);
  assert.deepEqual(parseAddress("").parts, [""]);
});
