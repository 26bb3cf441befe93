import assert from "node:assert/strict";
import test from "node:test";

import { describe } from "../../../kubetwist/ui/static/lib/describe/index.js";
import { meaningOf, memberSchema, namesInOrder } from "../../../kubetwist/ui/static/lib/schema.js";

const SCHEMA = {
  properties: {
    spec: {
      properties: {
        size: { description: "Length in metres.", title: "Size" }, launched: { format: "date-time" },
        crew: { items: { properties: { name: { description: "Who." } } } }, tags: { additionalProperties: { description: "Any text." } },
      },
    },
  },
};
const BOAT = { apiVersion: "x.io/v1", kind: "Boat", metadata: { name: "b", uid: "u", creationTimestamp: "" }, spec: { other: 1, tags: { a: "b" }, crew: [{ name: "n" }], launched: "2026-01-01T00:00:00Z", size: 5 } };

test("fields are in the order of the schema, and have its descriptions", () => {
  const fields = describe(BOAT, { schema: SCHEMA }).find(({ title }) => title === "Specification").fields;
  assert.deepEqual(fields.map(([name, , meaning]) => [name, meaning]), [
    ["size", "Size: Length in metres."], ["launched", ""], ["crew[0].name", "Who."], ["tags.a", "Any text."], ["other", ""],
  ]);
  assert.equal(fields[1][1].since, "2026-01-01T00:00:00Z");
  assert.deepEqual(describe(BOAT).find(({ title }) => title === "Specification").fields.map(([name]) => name)[0], "other");
});

test("printed columns are a summary, with their descriptions", () => {
  const columns = [{ name: "Ready", description: "Whether it floats.", value: "True" }, { name: "Empty", description: "", value: null }];
  assert.deepEqual(describe(BOAT, { columns })[0], { title: "Summary", fields: [["Ready", { text: "True", tone: "good" }, "Whether it floats."]] });
});

test("odd schemas and names do no harm", () => {
  assert.equal(memberSchema({ properties: {} }, "__proto__"), undefined);
  assert.equal(memberSchema(undefined, "constructor"), undefined);
  assert.deepEqual(namesInOrder({ b: 1, constructor: 2 }, { properties: { constructor: {}, a: {} } }), ["constructor", "b"]);
  assert.equal(meaningOf({ title: 5, description: ["x"] }), "");
  assert.equal(meaningOf({ description: "x".repeat(1000) }).length, 401);
});
