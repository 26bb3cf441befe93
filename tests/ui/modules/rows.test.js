import assert from "node:assert/strict";
import test from "node:test";

import { filtered, keyOf, rowOf, sorted, tableOf, toneOf } from "../../../kubetwist/ui/static/lib/rows.js";

const created = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
const row = (name, cells, more = {}) => ({ key: `/${name}`, name, namespace: "", uid: name, cells, created: 0, ages: -1, leaving: false, flashed: 0, ...more });
const names = (rows) => rows.map((one) => one.name);

test("rowOf finds the column with the age of the object", () => {
  const columns = [{ name: "Name" }, { name: "Age" }];
  const meta = { name: "a", namespace: "n", uid: "u", creationTimestamp: created(125) };
  assert.equal(rowOf({ cells: ["a", "2m5s"], object: { metadata: meta } }, columns).ages, 1);
  assert.equal(rowOf({ cells: ["a", "7d"], object: { metadata: meta } }, columns).ages, -1);
  const leaving = rowOf({ cells: ["a", "1s"], object: { metadata: { ...meta, deletionTimestamp: created(0) } } }, columns, 5);
  assert.deepEqual([leaving.key, leaving.leaving, leaving.flashed], ["n/a", true, 5]);
  assert.equal(keyOf({ name: "x" }), "/x");
});

test("rows are sorted by values, not letters, and then by name", () => {
  const rows = [row("b", ["b", "10"]), row("a", ["a", "9"]), row("c", ["c", "10"])];
  assert.deepEqual(names(sorted([...rows], null)), ["a", "b", "c"]);
  assert.deepEqual(names(sorted([...rows], { index: 1, down: false })), ["a", "b", "c"]);
  assert.deepEqual(names(sorted([...rows], { index: 1, down: true })), ["b", "c", "a"]);
  const ages = [row("x", ["3d"], { ages: 0, created: 1 }), row("y", ["45s"], { ages: 0, created: 3 }), row("z", ["7m"], { ages: 0, created: 2 })];
  assert.deepEqual(names(sorted([...ages], { index: 0, down: false })), ["y", "z", "x"]);
  const durations = [row("x", ["3d"]), row("y", ["45s"]), row("z", ["7m9s"]), row("n", [null])];
  assert.deepEqual(names(sorted([...durations], { index: 0, down: false })).slice(1), ["y", "z", "x"]);
});

test("a filter has words that all match", () => {
  const rows = [row("a", ["a", "Running"]), row("b", ["b", "Failed"], { namespace: "kube" })];
  assert.deepEqual(names(filtered(rows, "")), ["a", "b"]);
  assert.deepEqual(names(filtered(rows, "kube fail")), ["b"]);
  assert.deepEqual(names(filtered(rows, "kube running")), []);
});

test("servers without Tables get names and ages", () => {
  const list = { metadata: { resourceVersion: "5" }, items: [{ metadata: { name: "a", creationTimestamp: created(5) } }] };
  const table = tableOf(list);
  assert.deepEqual(table.rows[0].cells, ["a", "5s"]);
  assert.equal(table.metadata.resourceVersion, "5");
  assert.equal(tableOf({ kind: "Table", rows: 1 }).rows, 1);
  assert.equal(tableOf(list.items[0]).rows.length, 1);
});

test("states have a tone in columns of states only", () => {
  assert.deepEqual(["Running", "CrashLoopBackOff", "Pending", "Other"].map((text) => toneOf(text, "Status")), ["good", "bad", "waiting", ""]);
  assert.equal(toneOf("Running", "Name"), "");
});
