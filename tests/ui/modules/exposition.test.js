import assert from "node:assert/strict";
import test from "node:test";

import { niceLimit, quantile, samples, shortNumber, sums } from "../../../kubetwist/ui/static/lib/exposition.js";

test("samples reads the text format", () => {
  const all = samples('# HELP a b\n# TYPE a counter\na{b="c \\"d\\"",e="f,}"} 5\na 1e3\nh_bucket{le="+Inf"} +Inf\nnot a sample\n');
  assert.deepEqual(all.get("a"), [{ labels: { b: 'c \\"d\\"', e: "f,}" }, value: 5 }, { labels: {}, value: 1000 }]);
  assert.deepEqual(all.get("h_bucket"), [{ labels: { le: "+Inf" }, value: Infinity }]);
});

test("sums adds the samples of a key", () => {
  const all = samples('r{v="GET",c="200"} 1\nr{v="GET",c="404"} 2\nr{v="PUT",c="200"} 4\n');
  assert.deepEqual(sums(all, "r", (labels) => labels.v), { GET: 3, PUT: 4 });
  assert.deepEqual(sums(all, "r", (labels) => labels.v, (labels) => labels.c === "200"), { GET: 1, PUT: 4 });
  assert.deepEqual(sums(all, "absent", () => ""), {});
});

test("quantile interpolates, as Prometheus does", () => {
  const after = { 1: 10, 2: 20, "+Inf": 20 };
  assert.equal(quantile(0.5, {}, after), 1);
  assert.equal(quantile(0.75, {}, after), 1.5);
  assert.equal(quantile(0.5, after, after), null);
  assert.equal(quantile(0.99, {}, { 1: 0, "+Inf": 5 }), 1);
  assert.equal(quantile(0.5, {}, {}), null);
});

test("axes end at a round value", () => {
  for (const [value, limit] of [[0.1, 0.1], [0.11, 0.2], [3, 5], [5, 5], [51, 100], [1000, 1000]]) assert.equal(Number(niceLimit(value).toPrecision(6)), limit);
});

test("shortNumber has about three digits", () => {
  for (const [value, text] of [[null, "–"], [0, "0"], [0.123, "0.12"], [12.34, "12.3"], [123.4, "123"], [12, "12"]]) assert.equal(shortNumber(value), text);
});
