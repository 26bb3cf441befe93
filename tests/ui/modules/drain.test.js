import assert from "node:assert/strict";
import test from "node:test";

import { drainCommand, evictAll, evictionOf, needsOf, planOf } from "../../../kubetwist/ui/static/lib/drain.js";

const pod = (name, { owner, ...more } = {}, meta = {}) => ({ metadata: { name, namespace: "n", uid: name, ownerReferences: owner ? [{ kind: owner, controller: true }] : [], ...meta }, ...more });
const refusal = (code, message = "", causes = []) => Object.assign(new Error(message), { code, status: { details: { causes } } });

/** Drain pods with a server that answers each eviction with the next of a list of answers: null evicts. */
async function drained(answers, { stopAfter = Infinity } = {}) {
  const stop = new AbortController(), plans = Object.keys(answers).map((name) => planOf(pod(name, { owner: "ReplicaSet" }))), left = new Set(Object.keys(answers)), log = [], pauses = [];
  let running = 0, most = 0;
  await evictAll(plans, {
    evict: async ({ metadata: { name } }) => {
      log.push(name);
      most = Math.max(most, ++running);
      await new Promise((resolve) => { setImmediate(resolve); });
      running--;
      const answer = answers[name].shift();
      if (answer) throw answer;
      left.delete(name);
    },
    remaining: async () => new Set(left),
    pause: async (milliseconds) => {
      pauses.push(milliseconds);
      if (pauses.length > stopAfter) stop.abort();
      await new Promise((resolve) => { setImmediate(resolve); });
    },
    changed: () => {},
  }, stop.signal);
  return { states: Object.fromEntries(plans.map(({ pod: { metadata }, state }) => [metadata.name, state])), plans, log, pauses, most };
}

test("pods stay, are evicted, or need a confirmation, as with kubectl drain", () => {
  const of = (...args) => { const { stays, needs, state } = planOf(pod("p", ...args)); return [stays, needs.join("+"), state]; };
  assert.deepEqual(of({ owner: "ReplicaSet" }), ["", "", "waiting"]);
  assert.deepEqual(of(), ["", "force", "waiting"]);
  assert.deepEqual(of({ owner: "DaemonSet", spec: { volumes: [{ emptyDir: {} }] } }), ["daemonSet", "", "waiting"]);
  assert.deepEqual(of({}, { annotations: { "kubernetes.io/config.mirror": "" } }), ["mirror", "", "waiting"]);
  assert.deepEqual(of({ spec: { volumes: [{ emptyDir: {} }] } }), ["", "force+emptyDir", "waiting"]);
  assert.deepEqual(of({ status: { phase: "Succeeded" }, spec: { volumes: [{ emptyDir: {} }] } }), ["", "", "waiting"]);
  assert.deepEqual(of({ owner: "Job" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }), ["", "", "leaving"]);
  assert.deepEqual(needsOf([planOf(pod("a")), planOf(pod("b", { owner: "Job", spec: { volumes: [{ emptyDir: {} }] } }))]), ["force", "emptyDir"]);
});

test("the command and the requests have the options", () => {
  assert.deepEqual(drainCommand(["n"], { force: true, emptyDir: true, seconds: "5" }), ["kubectl", "drain", "n", "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--grace-period=5"]);
  assert.deepEqual(drainCommand(["n", "m"], {}), ["kubectl", "drain", "n", "m", "--ignore-daemonsets"]);
  const { path, body } = evictionOf(pod("p"), "");
  assert.equal(path, "/api/v1/namespaces/n/pods/p/eviction");
  assert.deepEqual(body.deleteOptions, { preconditions: { uid: "p" } });
  assert.equal(evictionOf(pod("p"), "0").body.deleteOptions.gracePeriodSeconds, 0);
});

test("evictions that a budget prevents are tried again and do not hinder others", async () => {
  const answers = { free: [null] };
  for (let index = 0; index < 10; index++) answers[`blocked${index}`] = [refusal(429, "budget"), refusal(429, "budget"), null];
  const { states, log, pauses, most } = await drained(answers);
  assert.deepEqual([...new Set(Object.values(states))], ["gone"]);
  assert.equal(log.filter((name) => name === "blocked3").length, 3);
  assert.equal(pauses.filter((one) => one === 5000).length, 20);
  assert.ok(most <= 6, String(most));
});

test("a pod that is gone or replaced is gone, other errors are of their pod only", async () => {
  const ending = refusal(403, "", [{ reason: "NamespaceTerminating" }]);
  const { states, plans } = await drained({ missing: [refusal(404)], replaced: [refusal(409)], refused: [refusal(403, "no")], fine: [null] });
  assert.deepEqual(states, { missing: "gone", replaced: "gone", refused: "failed", fine: "gone" });
  assert.equal(plans[2].message, "no");
  assert.deepEqual((await drained({ ending: [ending] }, { stopAfter: 3 })).states, { ending: "leaving" });
});

test("a drain can be stopped while a budget prevents evictions", async () => {
  const { states } = await drained({ blocked: Array.from({ length: 100 }, () => refusal(429)), fine: [null] }, { stopAfter: 4 });
  assert.deepEqual(states, { blocked: "cancelled", fine: "gone" });
});
