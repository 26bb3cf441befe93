import assert from "node:assert/strict";
import test from "node:test";

import { conditionTone, scalars } from "../../../kubetwist/ui/static/lib/describe/generic.js";
import { describe } from "../../../kubetwist/ui/static/lib/describe/index.js";
import { containerState, probeText } from "../../../kubetwist/ui/static/lib/describe/pods.js";
import { forSeeds } from "./random.js";

const object = (apiVersion, kind, more = {}, meta = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", creationTimestamp: "2026-01-01T00:00:00Z", ...meta }, ...more });
const text = (value) => (Array.isArray(value) ? value.map(text).join("; ") : value !== null && typeof value === "object" ? value.text : String(value ?? ""));
const shown = (one) => Object.fromEntries(describe(one).map((section) => [section.title, section.fields
  ? Object.fromEntries(section.fields.map(([name, value]) => [name, text(value)])) : section.table.rows.map((row) => row.map(text))]));

const CONTAINER = {
  name: "web", image: "nginx", ports: [{ containerPort: 80, name: "http" }, { containerPort: 53, protocol: "UDP" }],
  resources: { requests: { cpu: "100m" }, limits: { cpu: "1", memory: "1Gi" } }, readinessProbe: { httpGet: { port: 80 } }, volumeMounts: [{ name: "v", mountPath: "/v", readOnly: true }],
};

test("a pod has its containers with states, and its volumes", () => {
  const pod = object("v1", "Pod", {
    spec: { nodeName: "n", containers: [CONTAINER], initContainers: [{ name: "side", image: "s", restartPolicy: "Always" }, { name: "setup", image: "i" }], volumes: [{ name: "v", secret: { secretName: "s" } }, { name: "e", emptyDir: {} }], ephemeralContainers: [{ name: "debug", image: "d" }] },
    status: { phase: "Running", containerStatuses: [{ name: "web", ready: true, restartCount: 2, state: { running: {} }, lastState: { terminated: { reason: "OOMKilled", exitCode: 137 } } }] },
  });
  const { Status, Containers, Volumes } = shown(pod);
  assert.deepEqual([Status.Phase, Status.Ready, Status.Node], ["Running", "1 of 1", "n"]);
  assert.deepEqual(Containers.map((row) => row[0]), ["side (sidecar)", "setup (init)", "web", "debug (ephemeral)"]);
  assert.deepEqual(Containers[2].slice(1), ["nginx", "Running", "2", "OOMKilled", "100m / 1", "– / 1Gi", "80 http; 53/UDP", "readiness: http :80/, after 0 s, every 10 s, timeout 1 s, 3 failures"]);
  assert.deepEqual(Volumes, [["v", "Secret", "s", "web: /v (read-only)"], ["e", "emptyDir", "", ""]]);
  assert.equal(shown({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }).Status.Phase, "Terminating");
});

test("states of containers are those of kubectl describe", () => {
  const of = (state, more = {}) => containerState({ state, ...more });
  assert.deepEqual([of({ waiting: { reason: "CrashLoopBackOff" } }).text, of({ waiting: { reason: "CrashLoopBackOff" } }).tone], ["CrashLoopBackOff", "bad"]);
  assert.equal(of({ terminated: { exitCode: 0, reason: "Completed" } }).text, "Completed");
  assert.equal(of({ terminated: { exitCode: 3 } }).text, "exit code 3 (3)");
  assert.equal(of({ running: {} }, { ready: false }).tone, "waiting");
  assert.equal(containerState(undefined).text, "Waiting");
});

test("probes are in one line", () => {
  assert.match(probeText({ tcpSocket: { port: 1 }, periodSeconds: 5 }), /^tcp :1, after 0 s, every 5 s/);
  assert.match(probeText({ exec: { command: ["a", "b"] } }), /^exec a b,/);
  assert.match(probeText({ grpc: { port: 1, service: "s" } }), /^grpc :1 s,/);
  assert.equal(probeText(undefined), "");
});

test("workloads have their progress", () => {
  const spec = { replicas: 3, selector: { matchLabels: { a: "b" } }, template: { spec: { containers: [CONTAINER] } } };
  const deployment = shown(object("apps/v1", "Deployment", { spec: { ...spec, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } }, paused: true }, status: { readyReplicas: 2, updatedReplicas: 3 } }));
  assert.deepEqual(deployment.Status, { Ready: "2 of 3", "Up to date": "3 of 3", Available: "0 of 3", Paused: "yes", Strategy: "RollingUpdate (maxSurge 1)", Selector: "a=b" });
  assert.equal(deployment["Containers of the template"][0][0], "web");
  assert.equal(shown(object("apps/v1", "StatefulSet", { spec: { ...spec, serviceName: "s" } })).Status.Service, "s");
  assert.equal(shown(object("apps/v1", "DaemonSet", { spec, status: { desiredNumberScheduled: 2, numberReady: 1, numberMisscheduled: 1 } })).Status["On wrong nodes"], "1");
  assert.equal(shown(object("batch/v1", "Job", { spec: { completions: 4 }, status: { succeeded: 1 } })).Status.Succeeded, "1 of 4");
  assert.equal(shown(object("batch/v1", "CronJob", { spec: { schedule: "* * * * *" }, status: { active: [{ name: "j" }] } })).Status.Active, "j");
});

test("other kinds have what matters of them", () => {
  assert.deepEqual(shown(object("v1", "Service", { spec: { ports: [{ port: 80, targetPort: "http" }] } })).Ports, [["", "80/TCP", "http", "", ""]]);
  const ingress = object("networking.k8s.io/v1", "Ingress", { spec: { rules: [{ host: "h", http: { paths: [{ path: "/p", pathType: "Prefix", backend: { service: { name: "s", port: { number: 80 } } } }] } }, { host: "empty" }] } });
  assert.deepEqual(shown(ingress).Rules, [["h", "/p", "Prefix", "s:80"], ["empty", "/", "", ""]]);
  const node = object("v1", "Node", { spec: { unschedulable: true, taints: [{ key: "k", effect: "NoSchedule" }] }, status: { capacity: { memory: "1Gi", pods: "110" } } });
  assert.deepEqual(shown(node).Capacity, [["memory", "1.0 GiB", ""], ["pods", "110", ""]]);
  assert.equal(shown(node).Status.Scheduling, "cordoned");
  assert.deepEqual(shown(object("v1", "Secret", { type: "Opaque", immutable: true })).Status, { Type: "Opaque", Immutable: "yes" });
  assert.equal(shown(object("v1", "ServiceAccount", { automountServiceAccountToken: false, secrets: [{ name: "s" }] })).Status.Secrets, "s");
  assert.equal(shown(object("policy/v1", "PodDisruptionBudget", { spec: { minAvailable: 1 }, status: { disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 1 } })).Status["Allowed disruptions"], "2");
  const autoscaler = object("autoscaling/v2", "HorizontalPodAutoscaler", { spec: { scaleTargetRef: { kind: "Deployment", name: "d" }, maxReplicas: 5, metrics: [{ type: "Resource", resource: { name: "cpu", target: { averageUtilization: 50 } } }] }, status: { currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 20 } } }] } });
  assert.deepEqual(shown(autoscaler).Metrics, [["Resource", "cpu", "20 %", "50 %"]]);
  assert.equal(shown(object("apiextensions.k8s.io/v1", "CustomResourceDefinition", { spec: { group: "g", versions: [{ name: "v1", served: true }] } })).Versions[0][1], "yes");
});

test("custom resources have their scalar fields", () => {
  const { Specification, Status, Conditions } = shown(object("x.io/v1", "Boat", { spec: { size: 5, crew: [{ name: "a" }], tags: ["x", "y"], none: null }, status: { conditions: [{ type: "Ready", status: "False" }], phase: "Docked" } }));
  assert.deepEqual(Specification, { size: "5", "crew[0].name": "a", tags: "x, y" });
  assert.deepEqual(Status, { phase: "Docked" });
  assert.equal(Conditions[0][0], "Ready");
  assert.ok(scalars(Array.from({ length: 1000 }, (_, index) => ({ index }))).length <= 60);
});

test("conditions have a tone by their meaning", () => {
  for (const [type, status, tone] of [["Ready", "True", "good"], ["Ready", "False", "bad"], ["DiskPressure", "True", "bad"], ["DiskPressure", "False", "good"], ["Ready", "Unknown", "waiting"], ["Progressing", "True", ""]]) assert.equal(conditionTone(type, status), tone);
});

test("no object, however odd, prevents its page", () => {
  const KINDS = ["Boat", "Pod", "Deployment"];
  const names = ["containers", "conditions", "name", "state", "template", "spec", "ports", "rules", "metrics", "volumes", "taints", "capacity", "scaleTargetRef", "versions", "names", "loadBalancer", "ingress"];
  forSeeds(400, (random) => {
    const any = (depth) => {
      const pick = Math.floor(random() * (depth > 3 ? 4 : 7));
      if (pick < 4) return [null, 5, "text", true][pick];
      if (pick === 4) return Array.from({ length: Math.floor(random() * 3) }, () => any(depth + 1));
      return Object.fromEntries(Array.from({ length: 1 + Math.floor(random() * 4) }, () => [names[Math.floor(random() * names.length)], any(depth + 1)]));
    };
    const kind = KINDS[Math.floor(random() * KINDS.length)];
    const part = () => (random() < 0.5 ? undefined : Object.fromEntries(names.map((name) => [name, any(1)])));
    // Custom resources may have any content; the API guarantees the shape of the others.
    describe(object("x.io/v1", kind, { spec: any(0), status: part(), other: any(0) }));
  });
});
