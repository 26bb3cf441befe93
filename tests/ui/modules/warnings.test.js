import assert from "node:assert/strict";
import test from "node:test";

import { countOf, grouped, timeOf } from "../../../kubetwist/ui/static/lib/warnings.js";
import { forSeeds } from "./random.js";

const NOW = Date.parse("2026-05-01T12:00:00Z");
const at = (seconds) => new Date(NOW - seconds * 1000).toISOString();
const event = (name, reason, seconds, more = {}) => ({ metadata: { name: "e" }, involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "n", name, uid: name }, reason, lastTimestamp: at(seconds), ...more });

test("the time and count of an event are those of its series, if it has one", () => {
  assert.equal(timeOf({ metadata: { creationTimestamp: at(9) } }), NOW - 9000);
  assert.equal(timeOf({ metadata: { creationTimestamp: at(9) }, eventTime: at(8), lastTimestamp: null }), NOW - 8000);
  assert.equal(timeOf({ lastTimestamp: at(7), series: { count: 3, lastObservedTime: at(2) } }), NOW - 2000);
  assert.deepEqual([{ count: 4 }, { count: 4, series: { count: 6 } }, {}, { count: "<b>" }, { count: -1 }].map(countOf), [4, 6, 1, 1, 1]);
});

test("events are grouped by object and reason; old ones are left out", () => {
  const groups = grouped([event("a", "BackOff", 50, { count: 3, message: "new" }), event("a", "BackOff", 100, { message: "old" }), event("a", "Failed", 10), event("b", "BackOff", 60), event("c", "BackOff", 3601)], NOW - 3_600_000);
  assert.deepEqual(groups.map(({ name, reason, count, last, message }) => [name, reason, count, (NOW - last) / 1000, message]), [["a", "Failed", 1, 10, ""], ["a", "BackOff", 4, 50, "new"], ["b", "BackOff", 1, 60, ""]]);
});

test("groups have all events after the time, once, whatever they contain", () => {
  const VALUES = [undefined, null, "", "a", "b", "__proto__", "<script>", 5, {}, [], at(5), at(5000)];
  forSeeds(500, (random) => {
    const pick = () => VALUES[Math.floor(random() * VALUES.length)];
    const events = Array.from({ length: 20 }, () => ({ metadata: { creationTimestamp: at(random() * 7200) }, involvedObject: random() < 0.2 ? pick() : { apiVersion: pick(), kind: pick(), namespace: pick(), name: pick(), uid: pick() }, reason: pick(), message: pick(), lastTimestamp: pick(), series: pick() }));
    const groups = grouped(events, NOW - 3_600_000);
    assert.equal(groups.reduce((sum, one) => sum + one.count, 0), events.filter((one) => timeOf(one) >= NOW - 3_600_000).length);
    assert.equal(new Set(groups.map((one) => one.key)).size, groups.length);
  });
});
