import assert from "node:assert/strict";
import test from "node:test";

import { changes, conflictsOf, equal, inexact, removals } from "../../../kubetwist/ui/static/lib/patch.js";

const object = (more = {}, meta = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "one", namespace: "here", ...meta }, ...more });

test("changes has the identity and the changed fields", () => {
  const before = object({ data: { a: "1", b: "2" } });
  assert.deepEqual(changes(before, object({ data: { a: "1", b: "3" } })), object({ data: { b: "3" } }));
  assert.deepEqual(changes(before, before), object());
});

test("changes keeps the fields of earlier changes, also empty maps", () => {
  const owned = { "f:data": { ".": {}, "f:a": {} } };
  const managed = [{ manager: "kubetwist-ui", operation: "Apply", fieldsV1: owned }, { manager: "x", operation: "Apply", fieldsV1: { "f:data": { "f:b": {} } } }];
  const before = object({ data: { a: "1", b: "2" } }, { managedFields: managed });
  assert.deepEqual(changes(before, object({ data: { a: "1", b: "2", c: "3" } })).data, { a: "1", c: "3" });
  assert.deepEqual(changes(before, object({ data: { b: "2" } })).data, {});
});

test("lists are atomic", () => {
  const before = object({ list: [{ a: 1 }, { b: 2 }] });
  assert.deepEqual(changes(before, object({ list: [{ a: 1 }, { b: 3 }] })).list, [{ a: 1 }, { b: 3 }]);
});

test("names of Object.prototype are ordinary names", () => {
  const before = object({ data: {} });
  assert.deepEqual(changes(before, object({ data: JSON.parse('{"constructor": "x", "toString": "y"}') })).data, { constructor: "x", toString: "y" });
  assert.deepEqual(removals(JSON.parse('{"constructor": 1}'), {}), ["constructor"]);
  assert.equal(equal(JSON.parse('{"constructor": 1}'), { other: 1 }), false);
});

test("removals lists paths", () => {
  assert.deepEqual(removals({ a: { b: 1, c: 2 }, d: 1 }, { a: { c: 3 } }), ["a.b", "d"]);
  assert.deepEqual(removals(undefined, {}), []);
});

test("equal compares by value", () => {
  assert.ok(equal({ a: [1, { b: null }] }, { a: [1, { b: null }] }));
  for (const [one, other] of [[{ a: 1 }, { a: 1, b: 2 }], [[1, 2], [1]], [{}, []], [null, {}], [1, "1"]]) assert.equal(equal(one, other), false);
});

test("inexact finds integers beyond 2^53", () => {
  assert.ok(inexact({ a: [{ b: 2 ** 53 }] }));
  assert.equal(inexact({ a: [2 ** 53 - 1, 1.5, "9007199254740993", null] }), false);
});

test("conflictsOf reads the causes of a Status", () => {
  const causes = [{ reason: "FieldManagerConflict", field: ".data.a", message: 'conflict with "kubectl" using v1' }, { reason: "Other" }, { reason: "FieldManagerConflict", message: "odd" }];
  assert.deepEqual(conflictsOf({ status: { details: { causes } } }), [{ field: ".data.a", manager: "kubectl" }, { field: "", manager: "odd" }]);
  assert.deepEqual(conflictsOf({}), []);
});
