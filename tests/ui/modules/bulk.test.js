import assert from "node:assert/strict";
import test from "node:test";

import { bulkActionsOf } from "../../../kubetwist/ui/static/lib/actions.js";
import { forAll, kubectlLines, questionsFor } from "../../../kubetwist/ui/static/lib/bulk.js";
import { Selection } from "../../../kubetwist/ui/static/lib/selection.js";
import { forSeeds } from "./random.js";

const resource = (plural, kind, group = "") => ({ group, version: "v1", resource: plural, kind, namespaced: true, verbs: ["delete", "patch"], shortNames: [], subresources: [], stale: false });
const PODS = resource("pods", "Pod");
const pod = (name, namespace = "a") => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace, uid: name, creationTimestamp: "" } });
const rows = (...keys) => keys.map((key) => ({ key, uid: `uid of ${key}` }));
const chosen = (selection) => [...selection.chosen.keys()].sort().join("");

test("objects of a namespace share a command", () => {
  const [remove, evict] = bulkActionsOf(PODS);
  assert.deepEqual(kubectlLines(remove, PODS, [pod("one"), pod("three", "b"), pod("two")], { propagation: "Background" }), [
    "kubectl delete pods/one pods/two --cascade=background -n a", "kubectl delete pods/three --cascade=background -n b",
  ]);
  assert.equal(kubectlLines(evict, PODS, [pod("one"), pod("two")], {}).length, 2);
  const many = Array.from({ length: 500 }, (_, index) => pod(`p${index}`, index % 2 ? "a" : "b"));
  assert.deepEqual(kubectlLines(remove, PODS, many, { propagation: "Background" }).map((line) => line.split(" pods/").length - 1), [100, 100, 100, 100, 50, 50]);
  const labels = bulkActionsOf(PODS).find(({ id }) => id === "labels"), values = { rows: [{ key: "x", value: "it's" }], removed: [{ key: "y" }] };
  assert.deepEqual(kubectlLines(labels, PODS, [pod("one"), pod("two")], values), ["kubectl label pods/one pods/two 'x=it'\\''s' y- --overwrite -n a"]);
});

test("a bounded number of calls runs at a time, and none begins after a stop", async () => {
  let running = 0, most = 0;
  const done = [], stop = new AbortController();
  await forAll(Array.from({ length: 50 }, (_, index) => index), async (index) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => { setImmediate(resolve); });
    running--;
    done.push(index);
    if (index === 20) stop.abort();
  }, 6, stop.signal);
  assert.equal(most, 6);
  assert.ok(done.length >= 21 && done.length <= 27, String(done.length));
  await forAll([], () => assert.fail(), 6);
});

test("permissions in many namespaces are first asked for all at once", () => {
  assert.deepEqual(questionsFor(["a", "b"], 2), { first: ["a", "b"], then: [] });
  assert.deepEqual(questionsFor(["a", "b", "c"], 2), { first: [""], then: ["a", "b"] });
});

test("rows are selected one by one, in ranges, and all", () => {
  const selection = new Selection(), all = rows("a", "b", "c", "d", "e");
  selection.toggle(all[1]);
  assert.equal(chosen(selection), "b");
  selection.extend(all, 3);
  assert.equal(chosen(selection), "bcd");
  selection.extend(all, 0);
  assert.equal(chosen(selection), "ab");
  selection.toggle(all[0]);
  assert.equal(chosen(selection), "b");
  selection.add(all);
  selection.remove(rows("c"));
  assert.equal(chosen(selection), "abde");
  selection.clear();
  assert.equal(selection.size, 0);
  selection.extend(all, 2);
  assert.equal(chosen(selection), "c");
});

test("a range follows the order of the rows, and rows outside stay selected", () => {
  const selection = new Selection();
  selection.toggle(rows("z")[0]);
  selection.begin("c");
  selection.extend(rows("e", "d", "c", "b", "a"), 0);
  assert.equal(chosen(selection), "cdez");
});

test("rows that vanish or are replaced are deselected", () => {
  const selection = new Selection();
  selection.add(rows("a", "b", "c"));
  selection.prune(new Map([["a", { key: "a", uid: "uid of a" }], ["b", { key: "b", uid: "another" }]]));
  assert.equal(chosen(selection), "a");
  selection.extend(rows("a"), 0);
  assert.equal(chosen(selection), "a");
});

test("no sequence of changes selects a row that does not exist", () => {
  forSeeds(200, (random) => {
    const selection = new Selection(), all = rows(..."abcdefgh");
    let there = all;
    for (let step = 0; step < 40; step++) {
      const index = Math.floor(random() * there.length), pick = Math.floor(random() * 5);
      if (pick === 0) selection.toggle(there[index]);
      else if (pick === 1) selection.extend(there, index);
      else if (pick === 2) selection.remove([there[index]]);
      else if (pick === 3) there = all.filter(() => random() < 0.8).concat(all[0]);
      else selection.add(there);
      selection.prune(new Map(there.map((row) => [row.key, row])));
      for (const key of selection.chosen.keys()) assert.ok(there.some((row) => row.key === key));
    }
  });
});
