import assert from "node:assert/strict";
import test from "node:test";

import { actionsOf } from "../../../kubetwist/ui/static/lib/actions.js";
import { kubectlLines } from "../../../kubetwist/ui/static/lib/bulk.js";
import { keyProblem, rowsProblem, valueProblem } from "../../../kubetwist/ui/static/lib/validation.js";

const NOW = new Date("2026-01-02T03:04:05Z");
const resource = (group, plural, kind) => ({ group, version: "v1", resource: plural, kind, namespaced: true, verbs: ["patch"], shortNames: [], subresources: [], stale: false });
const object = (apiVersion, kind, spec = {}, meta = {}) => ({ apiVersion, kind, metadata: { name: "one", namespace: "here", uid: "u", resourceVersion: "7", creationTimestamp: "", ...meta }, spec });
const find = (where, one, id) => actionsOf(where, one).find((action) => action.id === id);
const CONFIG = resource("", "configmaps", "ConfigMap"), NODES = { ...resource("", "nodes", "Node"), namespaced: false };

test("labels of one object are replaced, with its resource version", () => {
  const one = object("v1", "ConfigMap", undefined, { labels: { a: "1", b: "2", c: "3" } }), labels = find(CONFIG, one, "labels");
  assert.deepEqual(labels.fields([one])[0].initial, [{ key: "a", value: "1" }, { key: "b", value: "2" }, { key: "c", value: "3" }]);
  const values = { rows: [{ key: "a", value: "1" }, { key: "b", value: "x" }, { key: "__proto__", value: "y" }] };
  const { body, type } = labels.request(CONFIG, one, values, NOW);
  assert.equal(type, "application/merge-patch+json");
  assert.equal(JSON.stringify(body), '{"metadata":{"resourceVersion":"7","labels":{"b":"x","__proto__":"y","c":null}}}');
  assert.deepEqual(kubectlLines(labels, CONFIG, [one], values), ["kubectl label configmaps/one b=x __proto__=y c- --overwrite -n here"]);
  assert.equal(labels.check({ rows: [{ key: "a", value: "1" }, { key: "b", value: "2" }, { key: "c", value: "3" }] }, [one]), "Nothing is changed.");
});

test("annotations of many objects are added and removed", () => {
  const one = object("v1", "ConfigMap", undefined, { annotations: { a: "1" } }), other = object("v1", "ConfigMap"), annotations = find(CONFIG, one, "annotations");
  assert.deepEqual(annotations.fields([one, other]).map(({ id, initial }) => [id, initial]), [["rows", []], ["removed", []]]);
  const values = { rows: [{ key: "b", value: "two\nlines" }], removed: [{ key: "a" }] };
  assert.deepEqual(annotations.request(CONFIG, one, values, NOW).body.metadata.annotations, { b: "two\nlines", a: null });
  assert.equal(annotations.check(values, [one, other]), "");
});

test("keys and values are valid where Kubernetes accepts them", () => {
  for (const key of ["a", "a.b/c", "A-_.z", `${"p".repeat(60)}.x/${"n".repeat(63)}`]) assert.equal(keyProblem(key), "", key);
  for (const key of ["", "-a", "a-", "a/", "/a", "A.b/c", "a/b/c", "a b", "n".repeat(64), `${"p".repeat(254)}/a`, "ü"]) assert.notEqual(keyProblem(key), "", key);
  for (const value of ["", "a", "A_1.b"]) assert.equal(valueProblem(value), "", value);
  for (const value of ["-", "a ", "a/b", "v".repeat(64)]) assert.notEqual(valueProblem(value), "", value);
  assert.match(rowsProblem([{ key: "a", value: "" }, { key: "a", value: "b" }]), /twice/);
  assert.equal(rowsProblem([{ key: "A.io/x", value: "any text\n" }], true), "");
  assert.match(rowsProblem([{ key: "a", value: "x".repeat(262144) }], true), /256 KiB/);
});

test("taints that stay keep their time", () => {
  const taint = { key: "k", value: "v", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" };
  const node = object("v1", "Node", { taints: [taint, { key: "old", effect: "NoSchedule" }] }, { namespace: undefined }), action = find(NODES, node, "taint");
  assert.deepEqual(action.fields([node])[0].initial, [{ key: "k", value: "v", effect: "NoExecute" }, { key: "old", value: "", effect: "NoSchedule" }]);
  const values = { rows: [{ key: "k", value: "v", effect: "NoExecute" }, { key: "new", value: "", effect: "PreferNoSchedule" }] };
  assert.deepEqual(action.request(NODES, node, values, NOW).body, { metadata: { resourceVersion: "7" }, spec: { taints: [taint, { key: "new", effect: "PreferNoSchedule" }] } });
  assert.deepEqual(kubectlLines(action, NODES, [node], values), ["kubectl taint nodes one new=:PreferNoSchedule old:NoSchedule- --overwrite"]);
  assert.match(action.check({ rows: [values.rows[0], { ...values.rows[0], value: "w" }] }, [node]), /twice/);
  assert.equal(action.check({ rows: action.fields([node])[0].initial }, [node]), "Nothing is changed.");
  const many = { rows: [values.rows[1]], removed: [{ key: "old" }] };
  assert.deepEqual(action.request(NODES, node, many, NOW).body.spec.taints, [taint, { key: "new", effect: "PreferNoSchedule" }]);
});

test("images are set where the containers are", () => {
  const containers = [{ name: "web", image: "a" }, { name: "log", image: "b" }], template = { spec: { containers, initContainers: [{ name: "init", image: "c" }] } };
  const expected = { template: { spec: { initContainers: [{ name: "init", image: "d" }], containers: [{ name: "web", image: "e" }] } } };
  const values = { "image-web": " e ", "image-log": "b", "image-init": "d" };
  const apps = resource("apps", "deployments", "Deployment"), deployment = object("apps/v1", "Deployment", { template }), action = find(apps, deployment, "image");
  assert.deepEqual(action.fields([deployment]).map(({ id }) => id), ["image-init", "image-web", "image-log"]);
  assert.deepEqual(action.request(apps, deployment, values, NOW).body, { spec: expected });
  assert.deepEqual(kubectlLines(action, apps, [deployment], values), ["kubectl set image deployments.apps/one init=d web=e -n here"]);
  assert.equal(action.check({ "image-web": "a" }, [deployment]), "Nothing is changed.");
  const pods = resource("", "pods", "Pod"), pod = object("v1", "Pod", template.spec);
  assert.deepEqual(find(pods, pod, "image").request(pods, pod, values, NOW).body.spec, expected.template.spec);
  const crons = resource("batch", "cronjobs", "CronJob"), cron = object("batch/v1", "CronJob", { jobTemplate: { spec: { template } } });
  assert.deepEqual(find(crons, cron, "image").request(crons, cron, values, NOW).body.spec, { jobTemplate: { spec: expected } });
});

test("a token has an expiry and audiences", () => {
  const accounts = resource("", "serviceaccounts", "ServiceAccount"), account = object("v1", "ServiceAccount"), action = find(accounts, account, "token");
  const { path, body } = action.request(accounts, account, { seconds: "600", audiences: "a, b" }, NOW);
  assert.equal(path, "/api/v1/namespaces/here/serviceaccounts/one/token");
  assert.deepEqual(body.spec, { expirationSeconds: 600, audiences: ["a", "b"] });
  assert.deepEqual(action.request(accounts, account, { seconds: "600", audiences: "" }, NOW).body.spec, { expirationSeconds: 600 });
  assert.deepEqual(kubectlLines(action, accounts, [account], { seconds: "600", audiences: "a" }), ["kubectl create token one --duration=600s --audience=a -n here"]);
  assert.equal(action.secret({ status: { token: "t" } }), "t");
});
