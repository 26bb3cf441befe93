import assert from "node:assert/strict";
import test from "node:test";

import { CHECKS, allHealthy, claimProblem, daemonSetProblem, deploymentProblem, jobProblem, newestFirst, nodeProblem, podProblem, replicaSetProblem, requestProblem, statefulSetProblem, untrue } from "../../../kubetwist/ui/static/lib/problems.js";
import { forSeeds } from "./random.js";

const NOW = Date.parse("2026-05-01T12:00:00Z");
const ago = (seconds) => new Date(NOW - seconds * 1000).toISOString();
const condition = (type, status, reason, seconds = 30, message = "") => ({ type, status, reason, message, lastTransitionTime: ago(seconds) });
const pod = (status, metadata = {}) => ({ metadata: { name: "p", creationTimestamp: ago(600), ...metadata }, status });
const waiting = (reason) => ({ restartCount: 1, state: { waiting: { reason, message: "why" } } });
const ended = (seconds) => ({ restartCount: 2, state: { running: {} }, lastState: { terminated: { reason: "OOMKilled", exitCode: 137, finishedAt: ago(seconds) } } });
const reasonOf = (problem) => problem?.reason;

test("pods that are ready, finished or starting have no problem", () => {
  const ready = [condition("Ready", "True")];
  for (const status of [{ phase: "Running", conditions: ready }, { phase: "Succeeded", conditions: [condition("Ready", "False", "PodCompleted")] }, { phase: "Running", conditions: ready, containerStatuses: [ended(601)] }]) {
    assert.equal(podProblem(pod(status), NOW), null);
  }
  const starting = { phase: "Pending", containerStatuses: [waiting("ContainerCreating")] };
  assert.equal(podProblem(pod(starting, { creationTimestamp: ago(59) }), NOW), null);
  assert.equal(podProblem(pod({ phase: "Running", conditions: [condition("Ready", "False")] }, { deletionTimestamp: ago(10) }), NOW), null);
});

test("problems of pods have the reason and time of their containers or conditions", () => {
  const of = (status, metadata) => podProblem(pod(status, metadata), NOW);
  const unready = condition("Ready", "False", "ContainersNotReady", 30, "containers with unready status: [c]");
  assert.deepEqual(of({ phase: "Running", conditions: [unready], containerStatuses: [waiting("CrashLoopBackOff")] }), { reason: "CrashLoopBackOff", detail: "why", since: NOW - 30_000 });
  assert.deepEqual(of({ phase: "Running", conditions: [unready] }), { reason: "Not ready", detail: "containers with unready status: [c]", since: NOW - 30_000 });
  assert.equal(reasonOf(of({ phase: "Pending", initContainerStatuses: [waiting("ImagePullBackOff")] }, { creationTimestamp: ago(1) })), "ImagePullBackOff");
  assert.equal(reasonOf(of({ phase: "Pending", containerStatuses: [waiting("ContainerCreating")] }, { creationTimestamp: ago(61) })), "Pending");
  assert.deepEqual(of({ phase: "Pending", conditions: [condition("PodScheduled", "False", "Unschedulable", 5, "0/3 nodes")] }), { reason: "Unschedulable", detail: "0/3 nodes", since: NOW - 600_000 });
  assert.equal(reasonOf(of({ phase: "Failed", reason: "Evicted" })), "Evicted");
  assert.equal(reasonOf(of({ phase: "Failed" })), "Failed");
  assert.equal(reasonOf(of({ phase: "Unknown" })), "Unknown");
  assert.equal(reasonOf(of({ phase: "Running" }, { deletionTimestamp: ago(61) })), "Terminating");
  assert.deepEqual(of({ phase: "Running", conditions: [condition("Ready", "True")], containerStatuses: [ended(500), ended(100), ended(300)] }), { reason: "Restarted", detail: "OOMKilled, exit code 137", since: NOW - 100_000 });
});

test("workloads have a problem while fewer replicas are available than wanted", () => {
  const object = (spec, status, metadata = {}) => ({ metadata: { name: "w", creationTimestamp: ago(900), ...metadata }, spec, status });
  const unavailable = { availableReplicas: 1, conditions: [condition("Available", "False", "MinimumReplicasUnavailable", 40, "few")] };
  assert.deepEqual(deploymentProblem(object({ replicas: 3 }, unavailable)), { reason: "1 of 3 available", detail: "few", since: NOW - 40_000 });
  assert.equal(deploymentProblem(object({ replicas: 1 }, unavailable)), null);
  assert.equal(deploymentProblem(object({ replicas: 0 }, {})), null);
  assert.equal(reasonOf(deploymentProblem(object({}, {}))), "0 of 1 available");
  assert.equal(reasonOf(deploymentProblem(object({ replicas: 1 }, { availableReplicas: 1, conditions: [condition("Progressing", "False", "ProgressDeadlineExceeded")] }))), "ProgressDeadlineExceeded");
  assert.equal(reasonOf(statefulSetProblem(object({ replicas: 2 }, {}))), "0 of 2 available");
  assert.equal(reasonOf(daemonSetProblem(object({}, { desiredNumberScheduled: 5, numberAvailable: 4 }))), "4 of 5 available");
  assert.equal(daemonSetProblem(object({}, { desiredNumberScheduled: 5, numberAvailable: 5 })), null);
  assert.equal(reasonOf(replicaSetProblem(object({ replicas: 2 }, {}))), "0 of 2 available");
  assert.equal(replicaSetProblem(object({ replicas: 2 }, {}, { ownerReferences: [{ kind: "Deployment", name: "d" }] })), null);
  assert.equal(reasonOf(jobProblem(object({}, { conditions: [condition("Failed", "True", "BackoffLimitExceeded")] }))), "BackoffLimitExceeded");
  assert.equal(jobProblem(object({}, { conditions: [condition("Complete", "True")] })), null);
});

test("nodes, claims, requests and conditions", () => {
  const node = (conditions, spec = {}) => nodeProblem({ metadata: { creationTimestamp: ago(5) }, spec, status: { conditions } });
  const ready = condition("Ready", "True");
  assert.equal(node([ready, condition("MemoryPressure", "False")]), null);
  assert.equal(reasonOf(node([condition("Ready", "Unknown", "NodeStatusUnknown")])), "Not ready");
  assert.equal(reasonOf(node([])), "Not ready");
  assert.equal(reasonOf(node([ready, condition("MemoryPressure", "True"), condition("DiskPressure", "True")])), "MemoryPressure, DiskPressure");
  assert.deepEqual(node([ready], { unschedulable: true, taints: [{ key: "node.kubernetes.io/unschedulable", timeAdded: ago(7) }] }), { reason: "Cordoned", detail: "", since: NOW - 7000 });
  const claim = (phase, seconds) => claimProblem({ metadata: { creationTimestamp: ago(seconds) }, status: { phase } }, NOW);
  assert.deepEqual([claim("Bound", 90), claim("Pending", 59), claim("Pending", 61), claim("Lost", 1)].map(reasonOf), [undefined, undefined, "Pending", "Lost"]);
  const request = (conditions) => requestProblem({ metadata: { creationTimestamp: ago(9) }, spec: { signerName: "example.com/s" }, status: { conditions } });
  assert.deepEqual(request(), { reason: "Pending", detail: "example.com/s", since: NOW - 9000 });
  assert.equal(request([condition("Approved", "True")]), null);
  assert.equal(reasonOf(request([condition("Approved", "True"), condition("Failed", "True", "SignerFailed")])), "SignerFailed");
  const service = (...conditions) => untrue("Available")({ metadata: { creationTimestamp: ago(3) }, status: { conditions } });
  assert.equal(service(condition("Available", "True")), null);
  assert.equal(reasonOf(service(condition("Available", "False", "ServiceNotFound"))), "ServiceNotFound");
  assert.deepEqual(service(), { reason: "Available=Unknown", detail: "", since: NOW - 3000 });
});

test("rows of Tables tell whether objects must be read", () => {
  const { healthy } = CHECKS.find((one) => one.fieldSelector === "status.phase=Running");
  const table = (...rows) => ({ kind: "Table", columnDefinitions: ["Name", "Ready", "Status", "Restarts"].map((name) => ({ name })), rows: rows.map((cells) => ({ cells })) });
  const good = ["p", "2/2", "Running", "0"];
  assert.ok(allHealthy(table(good, ["p", "1/1", "Running", "3 (3h ago)"], ["p", "1/1", "Running", "3 (25m ago)"]), healthy));
  for (const cells of [["p", "1/2", "Running", "0"], ["p", "1/1", "CrashLoopBackOff", "0"], ["p", "1/1", "Running", "1 (9s ago)"], ["p", "1/1", "Running", "1 (4m5s ago)"], ["p", "1/1", "Running", "1 (12m ago)"], []]) {
    assert.ok(!allHealthy(table(good, cells), healthy), cells.join());
  }
  assert.ok(!allHealthy({ kind: "PodList", items: [] }, healthy));
  const deployments = CHECKS.find((one) => one.resource === "deployments").healthy;
  const deployment = (...cells) => allHealthy({ kind: "Table", columnDefinitions: ["Ready", "Up-to-date", "Available"].map((name) => ({ name })), rows: [{ cells }] }, deployments);
  assert.deepEqual([deployment("3/3", 3, 3), deployment("0/0", 0, 0), deployment("2/3", 3, 2), deployment("3/3", 1, 3), deployment("3/3", 3, 2)], [true, true, false, false, false]);
});

test("a page of rows is healthy only if none of its objects has a problem", () => {
  const { healthy } = CHECKS.find((one) => one.fieldSelector === "status.phase=Running");
  forSeeds(300, (random) => {
    const ready = random() < 0.7, seconds = Math.floor(random() * 3000), restarted = random() < 0.5;
    const object = pod({ phase: "Running", conditions: [condition("Ready", ready ? "True" : "False")], containerStatuses: restarted ? [ended(seconds)] : [] });
    const minutes = Math.floor(seconds / 60), time = seconds < 120 ? `${seconds}s` : minutes < 10 ? `${minutes}m${seconds % 60 ? `${seconds % 60}s` : ""}` : `${minutes}m`;
    const cells = { Ready: ready ? "1/1" : "0/1", Status: "Running", Restarts: restarted ? `2 (${time} ago)` : "0" };
    if (healthy((column) => cells[column])) assert.equal(podProblem(object, NOW), null);
  });
});

test("the newest problems are first, those without a time last", () => {
  const one = (name, since, namespace = "a") => ({ name, namespace, since });
  const sorted = newestFirst([one("b", NaN), one("x", 5), one("a", NaN), one("y", 9), one("a", NaN, "0"), one("x", 5, "0")]);
  assert.deepEqual(sorted.map(({ namespace, name }) => `${namespace}/${name}`), ["a/y", "0/x", "a/x", "0/a", "a/a", "a/b"]);
});

test("objects of any content cause no error", () => {
  const VALUES = [undefined, null, "", "Failed", "False", "<img src=x onerror=alert(1)>", "__proto__", 0, -1, NaN, 1e300, true, [], [null], [[]], {}, { reason: 5 }, "2026-05-01T11:59:00Z", "+275760-09-13T00:00:00.000Z"];
  const NAMES = ["metadata", "status", "spec", "conditions", "containerStatuses", "initContainerStatuses", "state", "lastState", "waiting", "terminated", "type", "reason", "message", "phase", "deletionTimestamp", "creationTimestamp", "lastTransitionTime",
    "replicas", "availableReplicas", "unschedulable", "taints", "key", "timeAdded", "restartCount", "finishedAt", "ownerReferences", "signerName"];
  forSeeds(400, (random) => {
    const pick = (from) => from[Math.floor(random() * from.length)];
    const value = (depth) => {
      const kind = random();
      if (depth > 4 || kind < 0.25) return pick(VALUES);
      if (kind < 0.45) return Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1));
      return Object.fromEntries(Array.from({ length: 8 }, () => [pick(NAMES), value(depth + 1)]));
    };
    const object = { metadata: value(1), status: value(1), spec: value(1) };
    for (const check of CHECKS) {
      const problem = check.problem(object, NOW);
      if (!problem) continue;
      assert.deepEqual([typeof problem.reason, typeof problem.detail, typeof problem.since], ["string", "string", "number"]);
      assert.ok(problem.reason !== "" && Math.abs(problem.since) !== Infinity, JSON.stringify(object));
    }
    allHealthy({ kind: "Table", columnDefinitions: value(2), rows: value(2) }, () => true);
  });
});
