import assert from "node:assert/strict";
import test from "node:test";

import { SeenLabels, completions, fieldsOf, isSelector, requirementOf, selectableFields, termsOf, valuesOfField, wrongPart } from "../../../kubetwist/ui/static/lib/selectors.js";

test("requirements are parsed", () => {
  const cases = {
    "app=web": ["app", "=", ["web"]], "app==web": ["app", "=", ["web"]], "app!=web": ["app", "!=", ["web"]], "app=": ["app", "=", [""]],
    "tier in (a, b)": ["tier", "in", ["a", "b"]], "tier notin (a)": ["tier", "notin", ["a"]], app: ["app", "exists", []], "!app": ["app", "!", []],
    "size>3": ["size", "gt", ["3"]], "size < 3": ["size", "lt", ["3"]],
  };
  for (const [text, [key, operator, values]] of Object.entries(cases)) assert.deepEqual(requirementOf(text), { key, operator, values }, text);
  for (const text of ["a b", "a in b", "=b", "(a)", "a=b=c", ""]) assert.equal(requirementOf(text), null, text);
});

test("the wrong part of a requirement is found", () => {
  const cases = { "app=web": "", "example.com/app in (a,b)": "", "app=": "", "-app=web": "-app", "app=-web": "-web", "app in (a,b c)": "b c", "size>x": "x", "a b": "a b", [`app=${"x".repeat(64)}`]: "x".repeat(64), "<b>=x": "<b>=x" };
  for (const [text, part] of Object.entries(cases)) assert.equal(wrongPart(text), part, text);
});

test("a filter has words and requirements", () => {
  assert.deepEqual(termsOf("web app=x tier in (a, b) !old run"), { words: "web run", selectors: ["app=x", "tier in (a, b)", "!old"], last: "run" });
  assert.deepEqual(termsOf("web "), { words: "web", selectors: [], last: "" });
  assert.deepEqual(termsOf("a=b,c=d"), { words: "", selectors: ["a=b", "c=d"], last: "a=b,c=d" });
  assert.deepEqual(["app=", "a!=b", "!a", "==", "!", "web", "!="].map(isSelector), [true, true, true, false, false, false, false]);
});

test("labels are collected up to a bound", () => {
  const seen = new SeenLabels(2, 2);
  seen.add(undefined);
  for (const value of ["1", "2", "3"]) seen.add({ a: value, b: "x", c: value });
  assert.deepEqual([...seen.values].map(([key, values]) => [key, [...values]]), [["a", ["1", "2"]], ["b", ["x"]]]);
});

test("keys and values are completed", () => {
  const known = {
    labels: new Map([["app", new Set(["web", "db", "cobweb"])], ["tier", new Set(["front"])]]), fields: ["metadata.name", "status.phase"],
    fieldValues: (field) => (field === "status.phase" ? ["Running", "Pending"] : []),
  };
  const shown = (term) => completions(term, known).map((one) => one.text);
  assert.deepEqual(shown("ap"), ["app="]);
  assert.deepEqual(shown("app"), ["app=", "app"]);
  assert.deepEqual(shown("app="), ["app=cobweb", "app=db", "app=web"]);
  assert.deepEqual(shown("app!=we"), ["app!=web", "app!=cobweb"]);
  assert.deepEqual(shown("status.phase=r"), ["status.phase=Running"]);
  assert.deepEqual(shown("!ti"), ["!tier"]);
  assert.deepEqual(shown("unknown="), []);
  assert.deepEqual(shown(""), []);
  assert.deepEqual(completions("pha", known), [{ text: "status.phase=", field: true, finished: false }]);
});

test("kinds have fields", () => {
  assert.ok(fieldsOf({ group: "", resource: "pods", namespaced: true }).includes("spec.nodeName"));
  assert.deepEqual(fieldsOf({ group: "x", resource: "y", namespaced: false }, ["spec.color"]), ["metadata.name", "spec.color"]);
  assert.deepEqual(valuesOfField("namespaces", "status.phase"), ["Active", "Terminating"]);
  const definition = { spec: { versions: [{ name: "v1", selectableFields: [{ jsonPath: ".spec.color" }] }, { name: "v2" }] } };
  assert.deepEqual([selectableFields(definition, "v1"), selectableFields(definition, "v2"), selectableFields(null, "v1")], [["spec.color"], [], []]);
});
