import assert from "node:assert/strict";
import test from "node:test";

import { hasListState, listStateOf, parseAddress, splitSelector, stateAddress, withQuery } from "../../../kubetwist/ui/static/lib/addresses.js";
import { themeOf } from "../../../kubetwist/ui/static/lib/themes.js";

const pods = { group: "", resource: "pods" };
const nothing = { namespace: null, labels: [], fields: [], filter: "", sort: "", wide: false, columns: [] };

test("the state of a table survives in its address", () => {
  const states = [
    nothing,
    { ...nothing, namespace: "" },
    { namespace: "team-a", labels: ["app=web", "tier in (a,b)", "!old"], fields: ["status.phase=Running"], filter: "a & b=c %", sort: "-Age", wide: true, columns: ["Name", "Nominated Node"] },
  ];
  for (const state of states) {
    const { parts, query } = parseAddress(stateAddress(pods, state));
    assert.deepEqual(parts, ["list", "-", "pods"]);
    assert.deepEqual(listStateOf(query), state);
  }
  assert.equal(stateAddress(pods, nothing), "#/list/-/pods");
});

test("a namespace alone is not a state of a table", () => {
  assert.equal(hasListState(new URLSearchParams("namespace=a")), false);
  assert.equal(hasListState(new URLSearchParams("labels=a%3Db")), true);
});

test("selectors are split outside of parentheses", () => {
  assert.deepEqual(splitSelector("a=b, c in (d,e) ,!f,,"), ["a=b", "c in (d,e)", "!f"]);
  assert.deepEqual(splitSelector(""), []);
});

test("withQuery replaces the parameters", () => {
  assert.equal(withQuery("#/access?namespace=a", new URLSearchParams({ namespace: "b" })), "#/access?namespace=b");
  assert.equal(withQuery("#/access?namespace=a", new URLSearchParams()), "#/access");
});

test("an unknown theme is that of the system", () => {
  assert.deepEqual(["dark", "light", "system", "<b>", null].map(themeOf), ["dark", "light", "system", "system", "system"]);
});
