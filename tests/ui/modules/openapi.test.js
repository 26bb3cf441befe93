import assert from "node:assert/strict";
import test from "node:test";

import { checkDocument, fieldsOf, kindsOf, statusDiagnostics } from "../../../kubetwist/ui/static/lib/diagnostics.js";
import { Schemas } from "../../../kubetwist/ui/static/lib/openapi.js";
import { treeOf } from "../../../kubetwist/ui/static/lib/yamltree.js";

const ref = (name) => ({ $ref: `#/components/schemas/x.${name}` });
const DOCUMENT = {
  components: {
    schemas: {
      "x.Meta": { type: "object", properties: { name: { type: "string" }, labels: { type: "object", additionalProperties: { type: "string" } } } },
      "x.Port": { type: "object", required: ["port", "protocol"], properties: { port: { type: "integer", minimum: 1, maximum: 65535 }, protocol: { type: "string", default: "TCP", enum: ["TCP", "UDP"] }, target: ref("IntOrString") } },
      "x.IntOrString": { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
      "x.Loop": ref("Loop"),
      "x.Tree": { type: "object", properties: { children: { type: "array", items: ref("Tree") } } },
      "x.Thing": {
        type: "object", required: ["spec"], "x-kubernetes-group-version-kind": [{ group: "g", version: "v1", kind: "Thing" }],
        properties: {
          apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { description: "its metadata", default: {}, allOf: [ref("Meta")] },
          spec: {
            type: "object", required: ["size"], properties: {
              size: { type: "integer", description: "how large" }, ratio: { type: "number" }, paused: { type: "boolean" }, ports: { type: "array", maxItems: 2, items: ref("Port") },
              code: { type: "string", pattern: "^[a-z]+$", minLength: 2, maxLength: 4 }, slow: { type: "string", pattern: "^(a+)+$" }, free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
              any: { type: "object" }, amount: { "x-kubernetes-int-or-string": true }, loop: ref("Loop"), tree: ref("Tree"), nothing: ref("Missing"),
            },
          },
        },
      },
    },
  },
};
const schemas = new Schemas(DOCUMENT);
const root = schemas.ofKind("g/v1", "Thing");
const thing = (spec, more = {}) => ({ apiVersion: "g/v1", kind: "Thing", metadata: { name: "a" }, spec: { size: 1, ...spec }, ...more });
const codes = (spec) => schemas.faults(root, thing(spec)).map(({ path, code }) => `${path.join(".")} ${code}`);

test("a field follows references and allOf, with its own description", () => {
  const found = schemas.at(root, ["metadata"]);
  assert.deepEqual([found.type, found.label, found.description, found.raw.default], ["object", "Meta", "its metadata", {}]);
  assert.equal(schemas.at(root, ["metadata", "labels"]).label, "map[string]string");
  assert.equal(schemas.at(root, ["spec", "ports"]).label, "[]Port");
  assert.equal(schemas.at(root, ["spec", "ports", 3, "target"]).label, "integer or string");
  assert.equal(schemas.at(root, ["spec", "tree", "children", 0, "children", 1]).type, "object");
  assert.equal(schemas.at(root, ["spec", "unknown", "more"]), null);
  assert.equal(schemas.ofKind("g/v1", "Other"), null);
});

test("references that loop or lead nowhere allow anything", () => {
  assert.deepEqual(codes({ loop: { a: 1 }, nothing: [1] }), []);
});

test("completions are the missing fields, required ones first", () => {
  const names = schemas.completions(schemas.at(root, ["spec", "ports", 0]), ["target"]).map(({ name, required }) => [name, required]);
  assert.deepEqual(names, [["port", true], ["protocol", true]]);
  assert.equal(schemas.completions(schemas.at(root, ["spec"]), [])[0].name, "size");
  assert.deepEqual(schemas.completions(schemas.at(root, ["metadata", "labels"]), []), []);
});

test("faults have their paths", () => {
  assert.deepEqual(codes({ paused: true, ratio: 1, amount: "5", any: { x: { y: 1 } }, free: { z: 1 }, ports: [{ port: 80 }], code: "abc" }), []);
  assert.deepEqual(codes({ sise: 1 }), ["spec.sise unknown"]);
  assert.deepEqual(schemas.faults(root, thing({ sise: 1 }))[0].similar, "size");
  assert.deepEqual(codes({ size: null }), ["spec missing"]);
  assert.deepEqual(codes({ size: "1", paused: "true", ports: {}, ratio: [] }), ["spec.size type", "spec.paused type", "spec.ports type", "spec.ratio type"]);
  assert.deepEqual(codes({ ports: [{ port: 0 }, { port: 70000, protocol: "HTTP" }, { port: 1.5 }] }), ["spec.ports many", "spec.ports.0.port minimum", "spec.ports.1.port maximum", "spec.ports.1.protocol value", "spec.ports.2.port type"]);
  assert.deepEqual(codes({ code: "A" }), ["spec.code pattern", "spec.code short"]);
  assert.deepEqual(codes({ code: "abcde" }), ["spec.code long"]);
  assert.deepEqual(schemas.faults(root, { metadata: { labels: { a: 1 } } }).map(({ code }) => code), ["missing", "type"]);
});

test("a slow pattern is not evaluated", () => {
  assert.deepEqual(codes({ slow: `${"a".repeat(100)}!` }), []);
});

test("at most a hundred faults are found", () => {
  assert.equal(schemas.faults(root, thing({ ports: Array.from({ length: 500 }, () => ({ port: "x" })) })).length, 100);
});

test("names of Object.prototype are unknown fields", () => {
  assert.deepEqual(codes(JSON.parse('{"constructor": 1, "toString": 2}')), ["spec.constructor unknown", "spec.toString unknown"]);
});

/** Return [line, message] of what is wrong in a text. */
const check = (text) => kindsOf(text).flatMap((one) => checkDocument(text, one, schemas)).map(({ from, to, message }) => {
  assert.ok(from >= 0 && from <= to && to <= text.length);
  return [text.slice(0, from).split("\n").length, message];
});

test("checkDocument places faults in their lines", () => {
  const head = "apiVersion: g/v1\nkind: Thing\n";
  assert.deepEqual(check(`${head}spec:\n  size: 1\n`), []);
  assert.deepEqual(check(`${head}spec:\n  size: 1\n  ports:\n  - port: 80\n  - port: "80"\n`), [[7, "expected: integer"]]);
  assert.deepEqual(check(`${head}spec:\n  sise: 1\n`), [[3, 'required field "size" is missing'], [4, 'unknown field "sise"; similar: "size"']]);
  assert.deepEqual(check(`${head}metadata:\n  name: 5\nspec: {size: 1}\n`), [[4, "expected: string; put the value in quotes"]]);
  assert.deepEqual(check(`${head}spec: {}\n---\n${head}spec:\n  size: x\n`), [[3, 'required field "size" is missing'], [8, "expected: integer"]]);
  assert.deepEqual(check("kind: Other\na: 1\n"), []);
});

test("errors of syntax are in their lines", () => {
  assert.deepEqual(check("a: 1\nb: [1\nc: 2\n").map(([line]) => line), [3]);
  assert.deepEqual(check("a: 1\n  b: 2\n").map(([line]) => line), [2]);
  assert.equal(check("a: 1\na: 2\n").length, 1);
  assert.equal(check('a: "open')[0][0], 1);
});

test("fieldsOf reads causes and messages of a Status", () => {
  assert.deepEqual(fieldsOf({ details: { causes: [{ field: "spec.size", message: "Required value" }, { message: "no field" }] } }), [{ field: "spec.size", message: "Required value" }]);
  assert.deepEqual(fieldsOf({ message: 'strict decoding error: unknown field "spec.a", duplicate field "spec.b"' }).map(({ field }) => field), ["spec.a", "spec.b"]);
  assert.deepEqual(fieldsOf({ message: "failed to create typed patch object: .spec.foo: field not declared in schema" }), [{ field: ".spec.foo", message: "field not declared in schema" }]);
  assert.deepEqual([fieldsOf(undefined), fieldsOf({ message: "no: field" })], [[], []]);
});

test("statusDiagnostics finds the lines of causes", () => {
  const text = "kind: Thing\nspec:\n  size: 1\n  ports:\n  - port: 1\n";
  const status = { details: { causes: [{ field: "spec.ports[0].port", message: "bad" }, { field: "spec.code", message: "Required value" }] } };
  assert.deepEqual(statusDiagnostics(treeOf(text), status).map(({ from, message }) => [text.slice(0, from).split("\n").length, message]), [[5, "spec.ports[0].port: bad"], [2, "spec.code: Required value"]]);
});
