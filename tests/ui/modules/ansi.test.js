import assert from "node:assert/strict";
import test from "node:test";

import { AnsiParser } from "../../../kubetwist/ui/static/lib/ansi.js";
import { forSeeds } from "./random.js";

const parse = (line) => new AnsiParser().parse(line);
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/;

test("colours and attributes become classes", () => {
  assert.deepEqual(parse("a\x1b[31mb\x1b[1;44mc\x1b[0md"), [
    { text: "a", look: "" }, { text: "b", look: "f1" }, { text: "c", look: "bold f1 b4" }, { text: "d", look: "" },
  ]);
  assert.deepEqual(parse("\x1b[95;107mx\x1b[39;49my"), [{ text: "x", look: "f13 b15" }, { text: "y", look: "" }]);
  assert.deepEqual(parse("\x1b[7mx\x1b[27my"), [{ text: "x", look: "fpaper bink" }, { text: "y", look: "" }]);
  assert.deepEqual(parse("\x1b[2;3;4;9mx\x1b[mz"), [{ text: "x", look: "dim italic underline strike" }, { text: "z", look: "" }]);
});

test("256 colours and true colours become colours", () => {
  assert.deepEqual(parse("\x1b[38;5;196mx\x1b[48;5;244my"), [{ text: "x", look: "", color: "#ff0000" }, { text: "y", look: "", color: "#ff0000", background: "#808080" }]);
  assert.deepEqual(parse("\x1b[38;2;1;2;300mx"), [{ text: "x", look: "", color: "#0102ff" }]);
  assert.deepEqual(parse("\x1b[38;5;3mx"), [{ text: "x", look: "f3" }]);
  assert.deepEqual(parse("\x1b[38;5;999mx"), [{ text: "x", look: "" }]);
});

test("a look continues on the next line", () => {
  const parser = new AnsiParser();
  parser.parse("\x1b[32mgreen");
  assert.deepEqual(parser.parse("still"), [{ text: "still", look: "f2" }]);
});

test("other sequences are removed", () => {
  const text = (line) => parse(line).map((span) => span.text).join("|");
  assert.equal(text("a\x1b[2J\x1b[1;1Hb\x1b[?25lc"), "abc");
  assert.equal(text("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b"), "ab");
  assert.equal(text("\x1bPq\x1b\\a\x1b(Bb\x1bcc\r\x00\x08\x9b"), "abc");
  assert.equal(text("a\x1b[>1mb\tc"), "ab\tc");
  assert.deepEqual(parse(""), []);
});

test("of random bytes, only bounded texts without controls are left", () => {
  const alphabet = ["\x1b", "[", "]", ";", ":", "m", "3", "8", "4", "5", "1", "0", "\x07", "\\", "P", "<b>", "é", "\x9b", "\r", "\t", "?", " ", "99999999999"];
  forSeeds(3000, (random) => {
    const parser = new AnsiParser();
    for (let count = 0; count < 3; count++) {
      const line = Array.from({ length: Math.floor(random() * 60) }, () => (random() < 0.7 ? alphabet[Math.floor(random() * alphabet.length)] : String.fromCharCode(Math.floor(random() * 300)).replace("\n", ""))).join("");
      const spans = parser.parse(line);
      let rest = line;
      for (const { text, look, color, background, ...more } of spans) {
        assert.deepEqual(more, {});
        assert.ok(text && !CONTROLS.test(text));
        assert.match(look, /^((^| )(bold|dim|italic|underline|strike|f1?\d|b1?\d|fpaper|bink))*$/);
        for (const one of [color, background]) assert.ok(one === undefined || /^#[0-9a-f]{6}$/.test(one), one);
        // The texts are in the line in the same order, so that nothing is added or repeated.
        for (const letter of text) { const at = rest.indexOf(letter); assert.ok(at >= 0); rest = rest.slice(at + letter.length); }
      }
    }
  });
});

test("a long line of incomplete sequences takes little time", () => {
  for (const piece of ["\x1b[", "\x1b]", "\x1b[1;", "\x1bP\x1b", "\x1b[;;;;;;;;", "\x1b"]) {
    const spans = parse(piece.repeat(200_000 / piece.length));
    assert.ok(spans.every(({ text }) => !CONTROLS.test(text)));
  }
});
