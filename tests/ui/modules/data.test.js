import assert from "node:assert/strict";
import test from "node:test";

import { entriesOf } from "../../../kubetwist/ui/static/lib/data.js";

test("entries are decoded, sorted, and binary ones are no text", () => {
  const map = { kind: "ConfigMap", data: { b: "é", a: "" }, binaryData: { c: "AAE=", d: btoa("plain") } };
  assert.deepEqual(entriesOf(map).map(({ key, text, bytes }) => [key, text, bytes.length]), [["a", "", 0], ["b", "é", 2], ["c", null, 2], ["d", "plain", 5]]);
  assert.deepEqual(entriesOf({ kind: "Secret", data: { p: btoa("hunter2"), x: "not base64", y: "/w==" } }).map(({ text }) => text), ["hunter2", "", null]);
  assert.deepEqual(entriesOf({ kind: "Secret" }), []);
});
