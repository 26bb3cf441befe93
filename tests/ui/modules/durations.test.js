import assert from "node:assert/strict";
import test from "node:test";

import { age, isAge, isDuration, secondsOf } from "../../../kubetwist/ui/static/lib/durations.js";
import { forSeeds } from "./random.js";

const S = 1000, M = 60 * S, H = 60 * M, D = 24 * H, Y = 365 * D;

test("age has kubectl's format", () => {
  const expected = [
    [-2 * S, "<invalid>"], [-S / 2, "0s"], [0, "0s"], [S, "1s"], [119 * S, "119s"], [2 * M, "2m"], [2 * M + 5 * S, "2m5s"],
    [9 * M + 59 * S, "9m59s"], [10 * M + 59 * S, "10m"], [179 * M, "179m"], [3 * H, "3h"], [3 * H + 5 * M, "3h5m"], [8 * H + 5 * M, "8h"],
    [47 * H, "47h"], [2 * D, "2d"], [2 * D + H, "2d1h"], [8 * D + H, "8d"], [2 * Y - D, "729d"], [2 * Y, "2y"], [2 * Y + 3 * D, "2y3d"], [8 * Y + 3 * D, "8y"],
  ];
  for (const [elapsed, text] of expected) assert.equal(age(0, elapsed), text);
});

test("secondsOf reads what age writes, but for rounding", () => {
  forSeeds(500, (random) => {
    const seconds = Math.floor(10 ** (random() * 9));
    const text = age(0, seconds * 1000);
    assert.ok(isDuration(text), text);
    assert.ok(secondsOf(text) <= seconds && secondsOf(text) > seconds * 0.87 - 1, `${text} for ${seconds}`);
    assert.ok(isAge(text, 0, seconds * 1000), text);
  });
});

test("a cell that is another duration is no age", () => {
  assert.equal(isAge("5m", 0, 3 * H), false);
  assert.equal(isAge("", 0, 0), false);
  assert.equal(isAge("running", 0, 0), false);
});
