import assert from "node:assert/strict";
import test from "node:test";

import { leadsTo, listedRelations, liveRelations, uses } from "../../../kubetwist/ui/static/lib/relations.js";

const object = (apiVersion, kind, spec = {}, meta = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", ...meta }, spec });
const found = (one, title, candidate) => listedRelations(one).find((relation) => relation.title.startsWith(title)).keep(candidate);

test("tables select the objects that belong to an object", () => {
  const selector = { matchLabels: { a: "b" } };
  const [sets, pods] = liveRelations(object("apps/v1", "Deployment", { selector }));
  assert.deepEqual([sets.resource, sets.labelSelector, pods.resource, pods.labelSelector], ["replicasets", "a=b", "pods", "a=b"]);
  assert.equal(sets.keep({ ownerReferences: [{ uid: "u" }] }), true);
  assert.equal(sets.keep({}), false);
  assert.equal(liveRelations(object("v1", "Node"))[0].fieldSelector, "spec.nodeName=one");
  assert.deepEqual(liveRelations(object("v1", "Service", {})).map((one) => one.resource), ["endpointslices"]);
  assert.deepEqual(liveRelations(object("v1", "Service", { selector: { a: "b" } })).map((one) => one.resource), ["endpointslices", "pods"]);
  assert.deepEqual(liveRelations(object("batch/v1", "CronJob")).map((one) => one.resource), ["jobs"]);
  assert.deepEqual(liveRelations(object("x.io/v1", "Boat")), []);
});

test("services, budgets and autoscalers of a workload are found", () => {
  const deployment = object("apps/v1", "Deployment", { template: { metadata: { labels: { a: "b" } } } });
  assert.equal(found(deployment, "Services", { spec: { selector: { a: "b" } } }), true);
  assert.equal(found(deployment, "Services", { spec: {} }), false);
  assert.equal(found(deployment, "Disruption", { spec: { selector: { matchLabels: { a: "c" } } } }), false);
  assert.equal(found(deployment, "Autoscalers", { spec: { scaleTargetRef: { kind: "Deployment", name: "one", apiVersion: "apps/v1" } } }), true);
  assert.equal(found(deployment, "Autoscalers", { spec: { scaleTargetRef: { kind: "Deployment", name: "one", apiVersion: "other/v1" } } }), false);
  assert.deepEqual(listedRelations(object("v1", "Pod", {}, { labels: { a: "b" } })).map((one) => one.resource), ["services", "poddisruptionbudgets"]);
  assert.deepEqual(listedRelations(object("x.io/v1", "Boat")), []);
});

test("all ways to use a ConfigMap, Secret or claim are found", () => {
  const ways = {
    ConfigMap: [{ volumes: [{ configMap: { name: "n" } }] }, { volumes: [{ projected: { sources: [{ configMap: { name: "n" } }] } }] }, { containers: [{ envFrom: [{ configMapRef: { name: "n" } }] }] }, { initContainers: [{ env: [{ valueFrom: { configMapKeyRef: { name: "n" } } }] }] }],
    Secret: [{ volumes: [{ secret: { secretName: "n" } }] }, { volumes: [{ projected: { sources: [{ secret: { name: "n" } }] } }] }, { imagePullSecrets: [{ name: "n" }] }, { containers: [{ env: [{ valueFrom: { secretKeyRef: { name: "n" } } }] }] }],
    PersistentVolumeClaim: [{ volumes: [{ persistentVolumeClaim: { claimName: "n" } }] }],
  };
  for (const [kind, specs] of Object.entries(ways)) {
    for (const spec of specs) {
      assert.equal(uses({ spec }, kind, "n"), true, JSON.stringify(spec));
      assert.equal(uses({ spec }, kind, "m"), false);
      for (const other of Object.keys(ways)) if (other !== kind) assert.equal(uses({ spec }, other, "n"), false);
    }
  }
  assert.equal(uses({}, "Secret", "n"), false);
});

test("ingresses of a service or secret, and pods of an account are found", () => {
  const backend = { service: { name: "one" } }, ingress = { spec: { rules: [{ host: "h" }, { http: { paths: [{ backend }] } }], tls: [{ secretName: "one" }, {}] } };
  assert.equal(leadsTo(ingress, "one"), true);
  assert.equal(leadsTo(ingress, "two"), false);
  assert.equal(leadsTo({ spec: { defaultBackend: backend } }, "one"), true);
  assert.equal(leadsTo({}, "one"), false);
  assert.equal(found(object("v1", "Service"), "Ingresses", ingress), true);
  assert.equal(found(object("v1", "Secret"), "Ingresses", ingress), true);
  assert.equal(found(object("v1", "ServiceAccount"), "Pods", { spec: { serviceAccountName: "one" } }), true);
  assert.equal(found(object("v1", "ServiceAccount"), "Pods", { spec: { serviceAccountName: "two" } }), false);
});
