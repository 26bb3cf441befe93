import assert from "node:assert/strict";
import test from "node:test";

import { areaPath, fitting, joined, largest, linePath, nearest, noHistory, reduced, runs, shortNumber, since, stacked, summed, ticks, timeTicks, unitOf } from "../../../kubetwist/ui/static/lib/plots.js";
import { forSeeds } from "./random.js";

/** Return an integer below a limit. */
const below = (random, limit) => Math.floor(random() * limit);
const answer = (times, series, marks = [], capacity = 5) => ({ interval: 10, capacity, times, series, marks });
const one = (name, values, labels = {}) => ({ name, labels, values });

test("joined adds newer samples once, and drops what is above the capacity", () => {
  let all = joined(noHistory(), answer([10, 20], [one("a", [1, 2])], [{ time: 5, kind: "start", text: "" }]));
  assert.deepEqual(all.times, [10, 20]);
  all = joined(all, answer([20, 30], [one("a", [9, 3]), one("b", [9, 4])]));
  assert.deepEqual(all.times, [10, 20, 30]);
  assert.deepEqual(all.series, [one("a", [1, 2, 3]), one("b", [null, null, 4])]);
  all = joined(all, answer([40], [one("b", [5])]));
  assert.deepEqual(all.series, [one("a", [1, 2, 3, null]), one("b", [null, null, 4, 5])]);
  assert.equal(all.marks.length, 1);
  all = joined(all, answer([50, 60, 70, 80], [one("b", [6, 7, 8, 9])], [{ time: 45, kind: "ready", text: "" }]));
  assert.deepEqual(all.times, [40, 50, 60, 70, 80]);
  assert.deepEqual(all.series, [one("b", [5, 6, 7, 8, 9])]);
  assert.deepEqual(all.marks.map((mark) => mark.time), [45]);
  assert.deepEqual(joined(all, answer([], [])).times, all.times);
});

test("joined in pieces is the same as at once", () => {
  forSeeds(200, (random) => {
    const count = 1 + below(random, 12), times = Array.from({ length: count }, (_, index) => 10 * index);
    const values = times.map(() => (below(random, 3) ? below(random, 9) : null));
    let all = noHistory(), at = 0;
    while (at < count) {
      const end = Math.min(count, at + 1 + below(random, 4));
      const part = values.slice(at, end);
      all = joined(all, answer(times.slice(at, end), part.some((value) => value !== null) ? [one("a", part)] : []));
      at = end;
    }
    const kept = values.slice(-5);
    assert.deepEqual(all.times, times.slice(-5));
    assert.deepEqual(all.series, kept.some((value) => value !== null) ? [one("a", kept)] : []);
  });
});

test("labels of series are not confused, whatever they contain", () => {
  const all = joined(noHistory(), answer([10], [one("a", [1], { x: "b,c", y: "" }), one("a", [2], { x: "b", y: "c," })]));
  assert.equal(joined(all, answer([20], [one("a", [3], { x: "b,c", y: "" })])).series[0].values[1], 3);
});

test("since cuts the beginning", () => {
  const all = answer([10, 20, 30], [one("a", [1, 2, 3])], [{ time: 15, kind: "start", text: "" }, { time: 25, kind: "ready", text: "" }]);
  assert.deepEqual(since(all, 20).times, [20, 30]);
  assert.deepEqual(since(all, 20).series, [one("a", [2, 3])]);
  assert.deepEqual(since(all, 20).marks.map((mark) => mark.kind), ["ready"]);
  assert.deepEqual(since(all, 99).times, []);
});

test("ticks are round, begin at 0 and cover the maximum", () => {
  assert.deepEqual(ticks(1), [0, 0.5, 1]);
  assert.deepEqual(ticks(87), [0, 50, 100]);
  assert.deepEqual(ticks(0.0031), [0, 0.001, 0.002, 0.003, 0.004]);
  assert.deepEqual(ticks(0), [0, 1]);
  assert.deepEqual(ticks(NaN), [0, 1]);
  forSeeds(500, (random) => {
    const maximum = (1 + below(random, 999)) * 10 ** (below(random, 12) - 6), found = ticks(maximum);
    assert.ok(found.length >= 2 && found.length <= 6, `${maximum}: ${found}`);
    assert.ok(found.at(-1) >= maximum * 0.999 && found.at(-1) < maximum * 2.6, `${maximum}: ${found}`);
  });
});

test("times of an axis are round in local time", () => {
  assert.deepEqual(timeTicks(3605, 4205, 5), [3720, 3840, 3960, 4080, 4200]);
  assert.deepEqual(timeTicks(0, 3600, 4), [0, 900, 1800, 2700, 3600]);
  assert.deepEqual(timeTicks(1800, 5400, 1, 1800), [1800, 5400]);
});

test("units fit the largest value", () => {
  assert.deepEqual([0.0005, 0.02, 3].map((value) => unitOf("seconds", value).label), ["µs", "ms", "s"]);
  assert.deepEqual([5000, 5e7, 5e9].map((value) => unitOf("bytes", value).label), ["kB", "MB", "GB"]);
  assert.deepEqual([unitOf("share", 1).label, unitOf("rate", 1).label, unitOf("count", 1).label], ["%", "/s", ""]);
});

test("numbers are short", () => {
  assert.deepEqual([0, 0.12345, 12.345, 999.4, 123456, null, undefined].map(shortNumber), ["0", "0.123", "12.3", "999", "123456", "–", "–"]);
});

test("reduced keeps peaks", () => {
  const times = Array.from({ length: 100 }, (_, index) => index), values = times.map((time) => (time === 57 ? 9 : time === 3 ? null : 1));
  const found = reduced(times, values, 20);
  assert.equal(found.times.length, 20);
  assert.equal(found.values[found.times.indexOf(57)], 9);
  assert.ok(!found.values.includes(null));
  assert.equal(reduced(times, values, 100).times, times);
});

test("stacked adds what is below", () => {
  assert.deepEqual(stacked([[1, null, null], [2, 3, null]]), [[1, 0, null], [3, 3, null]]);
  assert.deepEqual(stacked([]), []);
});

test("nearest finds the closest time", () => {
  assert.equal(nearest([], 5), -1);
  forSeeds(200, (random) => {
    const times = Array.from({ length: 1 + below(random, 9) }, (_, index) => index * 10), time = below(random, 120) - 10;
    const best = Math.min(...times.map((each) => Math.abs(each - time)));
    assert.equal(Math.abs(times[nearest(times, time)] - time), best);
  });
});

test("lines and areas have gaps", () => {
  const times = [0, 10, 20, 100, 110], values = [1, 2, null, 4, 5];
  const parts = runs(times, values, 10);
  assert.deepEqual(parts, [[0, 1], [3, 4]]);
  assert.deepEqual(runs([0, 100], [1, 1], 10), [[0], [1]]);
  const y = (index) => values[index];
  assert.equal(linePath(parts, (index) => times[index], y), "M0 1L10 2M100 4L110 5");
  assert.equal(linePath([[0]], () => 10, () => 5), "M8.5 5h3");
  assert.equal(areaPath([[0, 1]], (index) => times[index], y, () => 0), "M0 1L10 2L10 0L0 0Z");
  assert.equal(areaPath([[0]], () => 10, () => 5, () => 0), "M8.5 5L11.5 5L11.5 0L8.5 0Z");
});

test("labels do not overlap", () => {
  const labels = [{ x: 0, text: "start" }, { x: 10, text: "ready" }, { x: 60, text: "x" }];
  assert.deepEqual(fitting(labels, 6).map(({ text }) => text), ["start", "x"]);
});

test("the largest series, and the sum of some", () => {
  const all = [one("a", [1, null]), one("b", [0, 0]), one("c", [5, 5])];
  assert.deepEqual(largest(all, 5).map(({ name }) => name), ["c", "a"]);
  assert.deepEqual(summed(all.slice(0, 2), 2), [1, 0]);
  assert.deepEqual(summed([], 1), [null]);
});
