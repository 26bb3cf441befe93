import assert from "node:assert/strict";
import test from "node:test";

import { actionsOf, attributesOf, bulkActionsOf, httpText } from "../../../kubetwist/ui/static/lib/actions.js";
import { kubectlLines } from "../../../kubetwist/ui/static/lib/bulk.js";
import { historyResource, revisionsOf, undoAction } from "../../../kubetwist/ui/static/lib/history.js";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const resource = (group, plural, kind, more = {}) => ({ group, version: "v1", resource: plural, kind, namespaced: true, verbs: [], shortNames: [], subresources: [], stale: false, ...more });
const DEPLOYMENTS = resource("apps", "deployments", "Deployment", { subresources: ["scale", "status"] });
const object = (apiVersion, kind, spec = {}, meta = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", creationTimestamp: "", ...meta }, spec });
const DEPLOYMENT = object("apps/v1", "Deployment", { replicas: 3 });
const kubectlText = (one, where, what, values = {}) => kubectlLines(one, where, [what], values).join("\n");
const offered = (where, one) => actionsOf(where, one).filter((action) => action.offered?.(one) ?? true).map(({ id }) => id);
const action = (where, one, id) => actionsOf(where, one).find((found) => found.id === id);

test("actions are offered that make sense in a state", () => {
  assert.deepEqual(offered(DEPLOYMENTS, DEPLOYMENT), ["scale", "restart", "pause", "image"]);
  assert.deepEqual(offered(DEPLOYMENTS, object("apps/v1", "Deployment", { paused: true })), ["scale", "resume", "image"]);
  const nodes = resource("", "nodes", "Node", { namespaced: false });
  assert.deepEqual(offered(nodes, object("v1", "Node")), ["cordon", "drain", "taint"]);
  assert.deepEqual(offered(nodes, object("v1", "Node", { unschedulable: true })), ["uncordon", "drain", "taint"]);
  assert.deepEqual(offered(resource("x.io", "boats", "Boat", { subresources: ["scale"] }), object("x.io/v1", "Boat")), ["scale"]);
  assert.deepEqual(offered(resource("x.io", "boats", "Boat"), object("x.io/v1", "Boat")), []);
  const requests = resource("certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest");
  assert.deepEqual(offered(requests, object("certificates.k8s.io/v1", "CertificateSigningRequest")), ["approve", "deny"]);
  assert.deepEqual(offered(requests, { ...object("certificates.k8s.io/v1", "CertificateSigningRequest"), status: { conditions: [{ type: "Denied" }] } }), []);
});

test("requests and commands say the same", () => {
  const scale = action(DEPLOYMENTS, DEPLOYMENT, "scale");
  assert.equal(scale.fields([DEPLOYMENT])[0].initial, "3");
  assert.deepEqual(scale.request(DEPLOYMENTS, DEPLOYMENT, { replicas: "5" }, NOW), { method: "PATCH", path: "/apis/apps/v1/namespaces/here/deployments/one/scale", type: "application/merge-patch+json", body: { spec: { replicas: 5 } } });
  assert.equal(kubectlText(scale, DEPLOYMENTS, DEPLOYMENT, { replicas: "5" }), "kubectl scale deployments.apps/one --replicas=5 -n here");
  assert.deepEqual(attributesOf(scale, DEPLOYMENTS, DEPLOYMENT.metadata), [{ verb: "patch", group: "apps", version: "v1", resource: "deployments", namespace: "here", name: "one", subresource: "scale" }]);
  const restart = action(DEPLOYMENTS, DEPLOYMENT, "restart").request(DEPLOYMENTS, DEPLOYMENT, {}, NOW);
  assert.deepEqual(restart.body.spec.template.metadata.annotations, { "kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z" });
  assert.match(httpText(restart), /^PATCH \/apis\/apps\/v1\/namespaces\/here\/deployments\/one\nContent-Type: application\/strategic-merge-patch\+json\n\n\{/);
});

test("a cluster-wide object needs no namespace", () => {
  const nodes = resource("", "nodes", "Node", { namespaced: false }), node = object("v1", "Node", {}, { namespace: undefined, name: "it's" });
  assert.equal(kubectlText(action(nodes, node, "cordon"), nodes, node), "kubectl cordon 'it'\\''s'");
});

test("a job of a cron job belongs to it", () => {
  const crons = resource("batch", "cronjobs", "CronJob"), cron = object("batch/v1", "CronJob", { jobTemplate: { metadata: { labels: { a: "b" } }, spec: { x: 1 } } });
  const trigger = action(crons, cron, "trigger");
  const { path, body } = trigger.request(crons, cron, { name: "now" }, NOW);
  assert.equal(path, "/apis/batch/v1/namespaces/here/jobs");
  assert.deepEqual([body.metadata.name, body.metadata.labels, body.metadata.annotations, body.metadata.ownerReferences[0].uid, body.spec], ["now", { a: "b" }, { "cronjob.kubernetes.io/instantiate": "manual" }, "u", { x: 1 }]);
  assert.equal(kubectlText(trigger, crons, cron, { name: "now" }), "kubectl create job now --from=cronjob/one -n here");
  assert.equal(attributesOf(trigger, crons, cron.metadata)[0].resource, "jobs");
});

test("the history has the revisions of the object, newest first", () => {
  const owner = [{ uid: "u", controller: true }];
  const template = { metadata: { labels: { app: "web", "pod-template-hash": "x" } }, spec: { containers: [{ image: "a" }] } };
  const set = (name, revision, more = {}) => ({ metadata: { name, ownerReferences: owner, annotations: { "deployment.kubernetes.io/revision": String(revision) }, creationTimestamp: "", ...more }, spec: { template } });
  const revisions = revisionsOf(DEPLOYMENT, [set("old", 2), set("new", 10), set("other", 99, { ownerReferences: [] })]);
  assert.deepEqual(revisions.map((one) => [one.number, one.current, one.images]), [[10, true, ["a"]], [2, false, ["a"]]]);
  const undo = undoAction(revisions[1]);
  assert.deepEqual(undo.request(DEPLOYMENTS, DEPLOYMENT, {}, NOW).body[1], { op: "replace", path: "/spec/template", value: { metadata: { labels: { app: "web" } }, spec: template.spec } });
  assert.equal(kubectlText(undo, DEPLOYMENTS, DEPLOYMENT), "kubectl rollout undo deployments.apps/one --to-revision=2 -n here");
  const controller = { metadata: { name: "r", ownerReferences: owner, creationTimestamp: "" }, revision: 3, data: { spec: { template: { $patch: "replace", ...template } } } };
  assert.deepEqual(revisionsOf(object("apps/v1", "StatefulSet"), [controller]).map((one) => [one.number, one.images]), [[3, ["a"]]]);
  assert.equal(undoAction(revisionsOf(object("apps/v1", "StatefulSet"), [controller])[0]).request(DEPLOYMENTS, DEPLOYMENT, {}, NOW).body[1].value.$patch, undefined);
  assert.equal(historyResource(object("x.io/v1", "Deployment")), null);
  assert.equal(historyResource(object("apps/v1", "DaemonSet")).resource, "controllerrevisions");
});

test("actions on many objects include their deletion, and none that needs one object", () => {
  const pods = resource("", "pods", "Pod", { verbs: ["delete", "patch"] });
  assert.deepEqual(bulkActionsOf(pods).map(({ id }) => id), ["delete", "evict", "labels", "annotations"]);
  assert.deepEqual(bulkActionsOf(resource("x.io", "boats", "Boat", { verbs: ["get"] })), []);
  const [remove, evict] = bulkActionsOf(pods), pod = object("v1", "Pod");
  assert.deepEqual(remove.request(pods, pod, { propagation: "Orphan" }, NOW).body, { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Orphan", preconditions: { uid: "u" } });
  assert.deepEqual(evict.request(pods, pod, {}, NOW).body.deleteOptions, { preconditions: { uid: "u" } });
  assert.deepEqual(attributesOf(evict, pods, { namespace: "here" }), [{ verb: "create", group: "", version: "v1", resource: "pods", namespace: "here", subresource: "eviction" }]);
  const drain = actionsOf(resource("", "nodes", "Node", { namespaced: false }), object("v1", "Node")).find(({ id }) => id === "drain");
  assert.deepEqual(attributesOf(drain, resource("", "nodes", "Node"), { name: "n" }).map((one) => [one.verb, one.resource, one.subresource]), [["patch", "nodes", undefined], ["list", "pods", undefined], ["create", "pods", "eviction"]]);
});
