import assert from "node:assert/strict";
import test from "node:test";

import { LineReader, lowered, markFound, MAX_LINE, Tail } from "../../../kubetwist/ui/static/lib/loglines.js";
import { forSeeds } from "./random.js";

test("lines are cut at line ends, wherever the text is divided", () => {
  forSeeds(200, (random) => {
    const text = Array.from({ length: 80 }, () => "ab\n\x1b[1m"[Math.floor(random() * 8)] ?? "c").join("");
    const reader = new LineReader(), whole = new LineReader();
    const lines = [];
    for (let at = 0; at < text.length;) {
      const size = 1 + Math.floor(random() * 9);
      lines.push(...reader.feed(text.slice(at, at + size)));
      at += size;
    }
    lines.push(...reader.end());
    assert.deepEqual(lines, [...whole.feed(text), ...whole.end()]);
  });
});

test("long lines are continued, with and without an end", () => {
  const reader = new LineReader();
  const lengths = (lines) => lines.map(({ text }) => text.length);
  assert.deepEqual(lengths(reader.feed(`${"x".repeat(2 * MAX_LINE + 1)}\n`)), [MAX_LINE, MAX_LINE, 1]);
  assert.deepEqual(lengths(reader.feed("y".repeat(MAX_LINE + 5))), [MAX_LINE]);
  assert.deepEqual(lengths(reader.end()), [5]);
  assert.deepEqual(reader.end(), []);
});

test("only lines with a look have pieces", () => {
  const [plain, red] = new LineReader().feed("a\r\n\x1b[31mb\n");
  assert.deepEqual(plain, { text: "a", spans: null });
  assert.deepEqual(red, { text: "b", spans: [{ text: "b", look: "f1" }] });
});

test("the tail is limited in number and size", () => {
  const tail = new Tail(3, 10, (text) => text.length);
  assert.deepEqual(tail.push(["a", "b", "c"]), []);
  assert.deepEqual(tail.push(["d", "e"]), ["a", "b"]);
  assert.deepEqual(tail.items, ["c", "d", "e"]);
  assert.deepEqual(tail.push(["123456789"]), ["c", "d"]);
  assert.deepEqual([tail.items, tail.size], [["e", "123456789"], 10]);
  tail.push(["x".repeat(99)]);
  assert.deepEqual([tail.items.length, tail.size], [1, 99]);
  assert.equal(tail.take().length, 1);
  assert.deepEqual([tail.items, tail.size], [[], 0]);
});

test("found texts are marked across the pieces of a line", () => {
  const line = { text: "error: ERROR", spans: [{ text: "err", look: "f1" }, { text: "or: ERROR", look: "" }] };
  assert.deepEqual(markFound(line, "error").map(({ text, look, found }) => [text, look, found]), [["err", "f1", true], ["or", "", true], [": ", "", false], ["ERROR", "", true]]);
  assert.deepEqual(markFound({ text: "none", spans: null }, "x"), [{ text: "none", look: "", found: false }]);
});

test("pieces of a marked line are the line, and every found piece is part of the wanted text", () => {
  forSeeds(500, (random) => {
    const text = Array.from({ length: 20 }, () => "aAbİß"[Math.floor(random() * 5)]).join("");
    const middle = Math.floor(random() * 20), wanted = ["a", "ab", "aa", "b"][Math.floor(random() * 4)];
    const spans = [{ text: text.slice(0, middle), look: "f1" }, { text: text.slice(middle), look: "" }];
    const pieces = markFound({ text, spans }, wanted);
    assert.equal(pieces.map((piece) => piece.text).join(""), text);
    for (const piece of pieces) if (piece.found) assert.ok(wanted.repeat(20).includes(lowered(piece.text)));
  });
});

test("a text in lower case has the same length", () => {
  assert.equal(lowered("ABC"), "abc");
  assert.equal(lowered("İX").length, "İX".length);
});
