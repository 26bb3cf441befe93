import assert from "node:assert/strict";
import test from "node:test";

import { blockOf, editable, folds, placesOf } from "../../../kubetwist/ui/static/lib/yamlblocks.js";

const TEXT = `apiVersion: v1
metadata:
  managedFields:
  - manager: a
    operation: Apply
  - manager: b
    operation: Update
  name: one
  uid: x
spec:
  list:
  - a: 1
    b: 2
  - a: 3
status:
  phase: Active
  conditions: []
`;
const lines = TEXT.replace(/\n$/, "").split("\n");

test("folds has the ends of blocks of more than one line", () => {
  const ends = folds(lines);
  const block = (line) => lines.slice(lines.indexOf(line) + 1, ends[lines.indexOf(line)]);
  assert.deepEqual(block("  list:"), ["  - a: 1", "    b: 2", "  - a: 3"]);
  assert.equal(block("spec:").length, 4);
  assert.equal(ends[0], 0);
  assert.equal(ends[lines.indexOf("status:")], lines.length);
});

test("blockOf finds a member by its path", () => {
  assert.deepEqual(blockOf(lines, "metadata", "managedFields"), [2, 7]);
  assert.deepEqual(blockOf(lines, "metadata", "uid"), [8, 9]);
  assert.equal(blockOf(lines, "metadata", "phase"), null);
  assert.equal(blockOf(lines, "managedFields"), null);
});

test("editable omits the fields of the server", () => {
  assert.equal(editable(TEXT), "apiVersion: v1\nmetadata:\n  name: one\nspec:\n  list:\n  - a: 1\n    b: 2\n  - a: 3\n");
  assert.equal(editable(editable(TEXT)), editable(TEXT));
});

test("placesOf does not depend on the lines above", () => {
  const places = (all) => new Set(placesOf(all, folds(all)).filter(Boolean));
  assert.deepEqual(places(lines), places(["first:", "  a: 1", ...lines]).difference(new Set(["/first:"])));
  const twice = ["a:", "- b:", "    c: 1", "    d: 1", "- b:", "    c: 1", "    d: 1"];
  assert.equal(places(twice).size, 3);
});
