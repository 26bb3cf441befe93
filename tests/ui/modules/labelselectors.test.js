import assert from "node:assert/strict";
import test from "node:test";

import { selectorText, selects, selectsByMap } from "../../../kubetwist/ui/static/lib/labelselectors.js";

const LABELS = { app: "web", tier: "front" };
const expression = (key, operator, values) => ({ matchExpressions: [{ key, operator, values }] });

test("all requirements of a selector must match", () => {
  assert.ok(selects({}, {}));
  assert.ok(selects({ matchLabels: { app: "web" } }, LABELS));
  assert.equal(selects({ matchLabels: { app: "web", x: "y" } }, LABELS), false);
  for (const [one, expected] of [
    [expression("app", "In", ["web", "db"]), true], [expression("app", "In", ["db"]), false], [expression("app", "NotIn", ["db"]), true],
    [expression("no", "NotIn", ["db"]), true], [expression("app", "Exists"), true], [expression("no", "Exists"), false],
    [expression("no", "DoesNotExist"), true], [expression("app", "DoesNotExist"), false], [expression("app", "Unknown"), false],
    [expression("constructor", "Exists"), false],
  ]) assert.equal(selects(one, LABELS), expected, JSON.stringify(one));
});

test("the selector of a service selects nothing if it is empty", () => {
  assert.equal(selectsByMap(undefined, LABELS), false);
  assert.equal(selectsByMap({}, LABELS), false);
  assert.ok(selectsByMap({ app: "web" }, LABELS));
});

test("selectorText is what the API reads", () => {
  assert.equal(selectorText({}), null);
  const selector = { matchLabels: { a: "b" }, matchExpressions: [{ key: "c", operator: "In", values: ["d", "e"] }, { key: "f", operator: "NotIn", values: ["g"] }, { key: "h", operator: "Exists" }, { key: "i", operator: "DoesNotExist" }] };
  assert.equal(selectorText(selector), "a=b,c in (d,e),f notin (g),h,!i");
});
