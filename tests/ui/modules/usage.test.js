import assert from "node:assert/strict";
import test from "node:test";

import { amountText, barOf, limitRows, metricsQuery, nodeUsage, podUsage, quotaUsage, requestOf, usageText } from "../../../kubetwist/ui/static/lib/usage.js";

const object = (apiVersion, kind, more = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", creationTimestamp: "" }, ...more });
const container = (name, requests, limits) => ({ name, resources: { requests, limits } });
const used = (name, cpu, memory) => ({ name, usage: { cpu, memory } });

test("the usage of a kind is where its pods are", () => {
  assert.deepEqual(metricsQuery(object("v1", "Pod")), { collection: "pods", name: "one" });
  assert.deepEqual(metricsQuery(object("v1", "Node")), { collection: "nodes", name: "one" });
  assert.deepEqual(metricsQuery(object("apps/v1", "Deployment", { spec: { selector: { matchLabels: { a: "b" } } } })), { collection: "pods", labelSelector: "a=b" });
  assert.equal(metricsQuery(object("apps/v1", "Deployment", { spec: {} })), null);
  assert.equal(metricsQuery(object("v1", "Service")), null);
});

test("a pod has a bar for each measured container and resource", () => {
  const pod = object("v1", "Pod", { spec: { containers: [container("web", { cpu: "100m" }, { cpu: "1", memory: "1Gi" }), container("unknown", {}, {})] } });
  const [cpu, memory, ...rest] = podUsage(pod, [{ containers: [used("web", "250m", "512Mi")] }]);
  assert.deepEqual(cpu, { name: "web", resource: "cpu", used: 0.25, request: 0.1, limit: 1 });
  assert.deepEqual([memory.used, memory.request, memory.limit], [2 ** 29, NaN, 2 ** 30]);
  assert.deepEqual(rest, []);
  assert.equal(usageText(cpu), "used 250m · requested 100m · limit 1");
  assert.equal(usageText(memory), "used 512 MiB · limit 1.0 GiB");
});

test("the pods of a workload are added", () => {
  const deployment = object("apps/v1", "Deployment", { spec: { template: { spec: { containers: [container("web", { cpu: "100m" }, {})] } } } });
  const [cpu] = podUsage(deployment, [{ containers: [used("web", "50m", "1Mi")] }, { containers: [used("web", "250m", "1Mi"), used("injected", "1", "1")] }, {}]);
  assert.deepEqual([cpu.used, cpu.request, cpu.limit], [0.3, 0.2, NaN]);
});

test("a node has what its pods request", () => {
  const node = object("v1", "Node", { status: { allocatable: { cpu: "4", memory: "1Gi", pods: "110" } } });
  const pods = [{ spec: { containers: [container("a", { cpu: "500m" })] } }, { spec: { containers: [container("a", { cpu: "1" })] }, status: { phase: "Succeeded" } }];
  const [cpu, memory, count] = nodeUsage(node, { usage: { cpu: "1", memory: "1Mi" } }, pods);
  assert.deepEqual([cpu.used, cpu.request, cpu.limit], [1, 0.5, 4]);
  assert.deepEqual([memory.used, memory.request], [2 ** 20, 0]);
  assert.deepEqual([count.resource, count.used, count.limit], ["pods", 1, 110]);
  assert.ok(Number.isNaN(nodeUsage(node, null, [])[0].used));
});

test("a pod requests the most that it needs at a time", () => {
  const spec = { containers: [container("a", { cpu: "1" })], initContainers: [container("setup", { cpu: "3" }), { ...container("side", { cpu: "500m" }), restartPolicy: "Always" }], overhead: { cpu: "250m" } };
  assert.equal(requestOf(spec, "cpu"), 3.25);
  assert.equal(requestOf({ ...spec, initContainers: spec.initContainers.slice(1) }, "cpu"), 1.75);
  assert.equal(requestOf(undefined, "cpu"), 0);
});

test("bars show the parts of the whole, and a tone", () => {
  assert.deepEqual(barOf({ used: 0.5, request: 0.25, limit: 1 }), { used: 0.5, request: 0.25, limit: 1, tone: "waiting" });
  assert.deepEqual(barOf({ used: 0.95, request: 1, limit: 1 }), { used: 0.95, request: 1, limit: 1, tone: "bad" });
  assert.deepEqual(barOf({ used: 2, request: NaN, limit: NaN }), { used: 0, request: 0, limit: 0, tone: "good" });
  assert.deepEqual(barOf({ used: NaN, request: 0, limit: 0 }), { used: 0, request: 0, limit: 0, tone: "good" });
});

test("quotas and limit ranges are in rows", () => {
  const quota = { metadata: { name: "q" }, spec: { hard: { pods: "4", "requests.cpu": "2" } }, status: { hard: { pods: "4", "requests.cpu": "2" }, used: { pods: "3" } } };
  assert.deepEqual(quotaUsage([quota]).map(({ resource, used: now, limit }) => [resource, now, limit]), [["pods", 3, 4], ["requests.cpu", NaN, 2]]);
  const range = { metadata: { name: "r" }, spec: { limits: [{ type: "Container", min: { cpu: "1m" }, default: { cpu: "1", memory: "1Gi" }, defaultRequest: { cpu: "100m" } }] } };
  assert.deepEqual(limitRows([range]), [["r", "Container", "cpu", "1m", "", "100m", "1", ""], ["r", "Container", "memory", "", "", "", "1Gi", ""]]);
  assert.deepEqual(limitRows([{ metadata: { name: "r" } }]), []);
  assert.deepEqual([amountText("cpu", 12.5), amountText("requests.cpu", 2), amountText("requests.memory", 1024), amountText("pods", 3)], ["12.5", "2", "1.0 KiB", "3"]);
});
