import assert from "node:assert/strict";
import test from "node:test";

import { MAX_NAME, MAX_VIEWS, viewsOf, withView, withoutView } from "../../../kubetwist/ui/static/lib/savedviews.js";

const view = (name = "pods", address = "#/list/-/pods") => ({ name, address });
const names = (/** @type {{ name: string }[] | null} */ views) => views?.map(({ name }) => name);

test("stored views are read in the order of their names, with numbers by value", () => {
  const stored = [view("view 10"), view("b"), view("view 9"), view("A")];
  assert.deepEqual(names(viewsOf(JSON.stringify(stored))), ["A", "b", "view 9", "view 10"]);
  assert.deepEqual(viewsOf(JSON.stringify([{ ...view(), more: 1 }])), [view()]);
});

test("what is no view is left out", () => {
  for (const text of [null, "", "{", "null", "3", "{}", '"x"']) assert.deepEqual(viewsOf(text), [], String(text));
  const wrong = [
    null, 3, "x", {}, { name: "a" }, view(" "), view("x".repeat(MAX_NAME + 1)), view("a", "javascript:alert(1)"), view("a", "https://example.com/#/list/-/pods"), view("a", "#/object/-/pods/a/b"),
    view("a", `#/list/${"x".repeat(2000)}`), { name: 3, address: "#/list/-/pods" }, { name: "a", address: ["#/list/-/pods"] },
  ];
  assert.deepEqual(viewsOf(JSON.stringify([...wrong, view("kept")])), [view("kept")]);
  assert.equal(viewsOf(JSON.stringify(Array.from({ length: MAX_VIEWS + 5 }, (_, index) => view(`v${index}`)))).length, MAX_VIEWS);
});

test("a view is added, replaces the one of its name, and is removed", () => {
  const views = withView([view("b")], view(" a ", "#/list/-/nodes"));
  assert.deepEqual(views, [view("a", "#/list/-/nodes"), view("b")]);
  const replaced = withView(views ?? [], view("a", "#/list/-/secrets"));
  assert.deepEqual(replaced, [view("a", "#/list/-/secrets"), view("b")]);
  assert.deepEqual(names(withoutView(replaced ?? [], "a")), ["b"]);
  assert.deepEqual(names(withoutView(replaced ?? [], "c")), ["a", "b"]);
});

test("an invalid view and one too many are refused", () => {
  assert.equal(withView([], view("")), null);
  assert.equal(withView([], view("x".repeat(MAX_NAME + 1))), null);
  assert.equal(withView([], view("a", "#/plots")), null);
  const full = Array.from({ length: MAX_VIEWS }, (_, index) => view(`v${index}`));
  assert.equal(withView(full, view("one more")), null);
  assert.equal(withView(full, view("v3", "#/list/-/nodes"))?.length, MAX_VIEWS);
});

test("what is stored is read again", () => {
  const views = withView(withView([], view("<b>")) ?? [], view("é 1")) ?? [];
  assert.deepEqual(viewsOf(JSON.stringify(views)), views);
});
