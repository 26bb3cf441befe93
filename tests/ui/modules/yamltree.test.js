import assert from "node:assert/strict";
import test from "node:test";

import { documentsOf, locate, nextIndent, pathAt, pathOfField, placeAt, textOf, treeOf } from "../../../kubetwist/ui/static/lib/yamltree.js";
import { CORE_SCHEMA, dump, load } from "../../../kubetwist/ui/static/vendor/js-yaml/js-yaml.mjs";
import { forSeeds } from "./random.js";

const WORDS = ["a", "name", "a.b/c", "spec", "x y", "it's", '"q"', "- dash", "# no", "a: b", "true", "12", "", "ü", "back\\slash", "{", "[x]", "*", "&a", "!t", "%", "@", "line\nline", "end\n", "tab\t", "null", "a #b", "?", "|"];

/** Return a random object. */
function randomObject(random, depth = 0) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const kind = depth > 3 ? 0 : Math.floor(random() * 3);
  if (depth && kind === 0) return pick([pick(WORDS), Math.floor(random() * 100), true, null, 1.5]);
  const count = Math.floor(random() * 4) + (depth ? 0 : 1);
  if (depth && kind === 1) return Array.from({ length: count }, () => randomObject(random, depth + 1));
  const keys = new Set(Array.from({ length: count }, () => pick(WORDS.filter((word) => word && !word.includes("\n")))));
  return Object.fromEntries([...keys].map((key) => [key, randomObject(random, depth + 1)]));
}

/** Dump in one of several styles. */
const styles = (random) => ({ schema: CORE_SCHEMA, indent: random() < 0.5 ? 2 : 4, noArrayIndent: random() < 0.5, flowLevel: random() < 0.3 ? Math.floor(random() * 4) : -1, quotingType: random() < 0.5 ? '"' : "'", forceQuotes: random() < 0.3, lineWidth: random() < 0.5 ? -1 : 30, noRefs: true });

/** Compare a tree with the value that js-yaml reads. */
function check(tree, value, text, path = "$") {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    assert.equal(tree?.type, "map", path);
    assert.equal(tree.entries.length, Object.keys(value).length, path);
    for (const entry of tree.entries) {
      assert.ok(Object.hasOwn(value, entry.key), `${path}.${entry.key}`);
      assert.equal(load(text.slice(entry.from, entry.to), { schema: CORE_SCHEMA })?.toString() ?? "null", entry.key);
      check(entry.value, value[entry.key], text, `${path}.${entry.key}`);
    }
  } else if (Array.isArray(value)) {
    assert.equal(tree?.type, "seq", path);
    assert.equal(tree.items.length, value.length, path);
    value.forEach((one, index) => check(tree.items[index], one, text, `${path}[${index}]`));
  } else if (tree && !/^[|>]/.test(text.slice(tree.from, tree.from + 1))) {
    assert.equal(tree.type, "scalar", path);
    assert.equal(tree.plain && typeof value !== "string" ? String(load(tree.text, { schema: CORE_SCHEMA })) : tree.text, String(value), path);
  } else if (!tree) assert.equal(value, null, path);
}

/** Yield all paths of a value. */
function* pathsOf(value, path = []) {
  if (value === null || typeof value !== "object") return;
  for (const [key, inner] of Object.entries(value)) {
    const here = [...path, Array.isArray(value) ? Number(key) : key];
    yield here;
    yield* pathsOf(inner, here);
  }
}

test("the tree of a random text is what js-yaml reads", () => {
  forSeeds(2000, (random) => {
    const text = dump(randomObject(random), styles(random));
    check(treeOf(text), load(text, { schema: CORE_SCHEMA }), text);
  });
});

test("the tree of JSON is what it says", () => {
  forSeeds(300, (random) => {
    const value = randomObject(random), text = JSON.stringify(value, null, random() < 0.5 ? 2 : 0);
    check(treeOf(text), value, text);
  });
});

test("every path of a random text is located, and found at its place", () => {
  forSeeds(500, (random) => {
    const text = dump(randomObject(random), styles(random)), tree = treeOf(text);
    for (const path of pathsOf(load(text, { schema: CORE_SCHEMA }))) {
      const { key, found } = locate(tree, path);
      assert.equal(found, path.length, path.join());
      if (typeof path.at(-1) === "string") assert.deepEqual(pathAt(tree, key[0])?.path, path);
    }
  });
});

test("every field name of a random object has its path", () => {
  forSeeds(500, (random) => {
    const value = randomObject(random), text = dump(value, styles(random)), tree = treeOf(text);
    for (const path of pathsOf(value)) {
      if (path.some((part) => /[[\]"]|^$/.test(String(part)))) continue;
      const field = path.map((part, index) => (typeof part === "number" || random() < 0.5 ? `[${part}]` : `${index ? "." : ""}${part}`)).join("");
      assert.deepEqual(locate(tree, pathOfField(tree, field)).key, locate(tree, path).key, field);
    }
  });
});

test("random cuts and changes of a text do not fail", () => {
  forSeeds(600, (random) => {
    let text = dump(randomObject(random), styles(random));
    for (let times = 0; times < 5; times++) {
      const at = Math.floor(random() * text.length);
      text = text.slice(0, at) + WORDS[Math.floor(random() * WORDS.length)] + text.slice(at + Math.floor(random() * 6));
    }
    const tree = treeOf(text);
    for (let at = 0; at <= text.length; at += 3) { placeAt(text, at); pathAt(tree, at); }
  });
});

const POD = `apiVersion: v1
kind: Pod
metadata:
  name: web   # a comment
  labels:
    app.kubernetes.io/name: web
    "quoted": 'it''s'
spec:
  containers:
  - name: web
    image: nginx
    command: [sh, -c]
    ports:
      - containerPort: 80
        protocol: TCP
      -
        containerPort: 80
        protocol: UDP
  - name: other
    args:
    - |
      text: no key
    - last
  volumes:
`;

test("textOf reads the kind", () => {
  const tree = treeOf(POD);
  assert.deepEqual([textOf(tree, "apiVersion"), textOf(tree, "kind"), textOf(tree, "none"), textOf(null, "kind")], ["v1", "Pod", "", ""]);
});

const lineOf = (text, field) => text.slice(0, locate(treeOf(text), pathOfField(treeOf(text), field)).key[0]).split("\n").length;

test("fields of a Status are on their lines", () => {
  for (const [field, line] of [
    ["metadata.name", 4], ["metadata.labels[app.kubernetes.io/name]", 6], ["metadata.labels.app.kubernetes.io/name", 6], ["metadata.labels.quoted", 7],
    ["spec.containers[0].image", 11], ["spec.containers[0].ports[1].protocol", 18], ["spec.containers[1]", 19], ["spec.containers[1].args[1]", 23],
    ['.spec.containers[name="other"].args', 20], ['.spec.containers[name="web"].ports[containerPort=80,protocol="UDP"].protocol', 18],
    ["spec.containers[0].nothing", 10], ["spec.containers[7].image", 9], ["spec.nothing", 8], ["nothing", 1], ["", 1], ['spec.containers[0].command[="-c"]', 12],
  ]) assert.equal(lineOf(POD, field), line, field);
});

/** Return the place at "|" in a text. */
const place = (marked) => placeAt(marked.replace("|", ""), marked.indexOf("|"));

test("placeAt finds keys and values", () => {
  const about = (marked) => { const { path, wanted } = place(marked); return [path.join("."), wanted]; };
  assert.deepEqual(about("spec:\n  rep|\n"), ["spec", "either"]);
  assert.deepEqual(about("spec:\n  rep|\n  paused: true\n"), ["spec", "key"]);
  assert.deepEqual(about("spec:\n  paused: true\n  |\n"), ["spec", "key"]);
  assert.deepEqual(about("spec:\n  paused: true\n  |"), ["spec", "key"]);
  assert.deepEqual(about("spec:\n  paused: tr|"), ["spec.paused", "value"]);
  assert.deepEqual(about("spec:\n  paused: |\n  b: 1"), ["spec.paused", "value"]);
  assert.deepEqual(about("spec:\n  paused: true\n|"), ["", "key"]);
  assert.deepEqual(about("|"), ["", "either"]);
  assert.deepEqual(about("spec:\n  containers:\n  - |"), ["spec.containers.0", "either"]);
  assert.deepEqual(about("spec:\n  containers:\n  - name: a\n    |"), ["spec.containers.0", "key"]);
  assert.deepEqual(about("spec:\n  containers:\n  - name: a\n  - im|\n    name: b"), ["spec.containers.1", "key"]);
  assert.deepEqual(about("spec:\n  containers:\n  - name: a\n  |"), ["spec", "key"]);
  assert.deepEqual(about("spec:\n    template:\n        |\n    x: 1"), ["spec.template", "either"]);
  assert.deepEqual(about("a: {b: 1, |}"), ["a", "key"]);
  assert.deepEqual(about("a: {b: |}"), ["a.b", "value"]);
  assert.deepEqual(about("a: [x, |]"), ["a.1", "either"]);
  assert.deepEqual(about('{"a": {"b": 1, |'), ["a", "key"]);
  assert.equal(place("a: 'te|xt'"), null);
  assert.equal(placeAt("a: |\n  text", 8), null);
  assert.equal(placeAt("# comment", 4), null);
});

test("placeAt names the other keys, and the word to replace", () => {
  const found = place("spec:\n  a: 1\n  re|pl: 2\n  b: 3");
  assert.deepEqual([found.present, found.colon, found.to - found.from], [["a", "b"], true, 4]);
});

test("documentsOf splits at markers only", () => {
  const text = "# only a comment\n---\na: 1\n--- # next\nb: |\n  ---\n  c\n...\n---\n\n---\n{\"c\": 3}\n---not: a marker\n";
  assert.deepEqual(documentsOf(text).map(({ from, to }) => text.slice(from, to).trim()), ["a: 1", "# next\nb: |\n  ---\n  c", "{\"c\": 3}\n---not: a marker"]);
  assert.deepEqual(documentsOf(""), []);
});

test("nextIndent follows keys, items and block scalars", () => {
  for (const [before, indent] of [["", 0], ["a: 1", 0], ["  a:", 4], ["  - a: 1", 4], ["- a:", 4], ["  a: |", 4], ["  a: >-", 4], ["a: b|", 0], ["a: {", null], ["  [a, ", null], ["- - a:", 6], ["  http://x", 2]]) assert.equal(nextIndent(before), indent, before);
});
