import assert from "node:assert/strict";
import test from "node:test";

import { queryOf, rank, rulesPermitList, score, searched, searchesObjects } from "../../../kubetwist/ui/static/lib/finding.js";

const kind = (resource, name, group = "", shortNames = [], more = {}) => ({ group, version: "v1", resource, kind: name, namespaced: true, verbs: ["list"], shortNames, subresources: [], stale: false, ...more });
const ALL = [kind("pods", "Pod", "", ["po"]), kind("deployments", "Deployment", "apps", ["deploy"]), kind("events", "Event"), kind("events", "Event", "events.k8s.io"), kind("nodes", "Node", "", [], { namespaced: false }), kind("webs", "Web", "example.com")];
const meaning = (text) => { const { kinds, ...rest } = queryOf(text, ALL); return { kinds: kinds.map((one) => one.resource), ...rest }; };

test("exact matches are before prefixes, words, parts and subsequences", () => {
  const texts = ["web", "web-1", "my-web", "cobweb", "w-e-b", "other"];
  const scores = texts.map((text) => score(text, "web"));
  assert.deepEqual([...scores].sort((a, b) => b - a), scores);
  assert.equal(new Set(scores).size, scores.length);
  assert.equal(scores.at(-1), 0);
});

test("capitals begin words, and shorter texts match better", () => {
  assert.ok(score("ReplicaSet", "set") > score("Reset", "set"));
  assert.ok(score("web-1", "web") > score("web-100000", "web"));
  assert.equal(score("pods", "xp"), 0);
  assert.equal(score("kube-proxy", "kp"), 0);
  assert.ok(score("kube-proxy", "kpr") > 0);
});

test("all words match, the first text counting most", () => {
  assert.equal(rank(["web", "default"], ["web", "team"]), 0);
  assert.ok(rank(["web", "team-a"], ["web", "team"]) > 0);
  assert.ok(rank(["web", "x"], ["web"]) > rank(["x", "web"], ["web"]));
  assert.equal(rank(["web"], []), 1);
  assert.equal(rank(["node-0", "kubernetes.io/arch=amd64 cpu=shared"], ["cache"]), 0);
});

test("a query names kinds, a namespace and labels", () => {
  assert.deepEqual(meaning("pod web"), { kinds: ["pods"], namespace: "", labels: [], words: ["web"] });
  assert.deepEqual(meaning("deploy/X"), { kinds: ["deployments"], namespace: "", labels: [], words: ["x"] });
  assert.deepEqual(meaning("po/"), { kinds: ["pods"], namespace: "", labels: [], words: [] });
  assert.deepEqual(meaning("events x").kinds, ["events", "events"]);
  assert.deepEqual(meaning("ns:team-a nginx"), { kinds: [], namespace: "team-a", labels: [], words: ["nginx"] });
  assert.deepEqual(meaning("pods app=web"), { kinds: ["pods"], namespace: "", labels: ["app=web"], words: [] });
  assert.deepEqual(meaning("app= ns: a=-"), { kinds: [], namespace: "", labels: [], words: [] });
  assert.deepEqual(meaning("pod"), { kinds: [], namespace: "", labels: [], words: ["pod"] });
  assert.deepEqual(meaning("pod ").kinds, ["pods"]);
  assert.deepEqual(meaning("a/b"), { kinds: [], namespace: "", labels: [], words: ["a/b"] });
});

test("objects are searched when a query says enough", () => {
  assert.deepEqual(["w", "we", "pod ", "app=web", "", "ns:a", "ns:a w"].map((text) => searchesObjects(queryOf(text, ALL))), [false, true, true, true, false, false, true]);
});

test("likely kinds are searched first, events never, in a namespace only its kinds", () => {
  const names = (text) => searched(queryOf(text, ALL), ALL).map((one) => one.resource);
  assert.deepEqual(names("xy"), ["pods", "deployments", "nodes", "webs"]);
  assert.deepEqual(names("web"), ["webs", "pods", "deployments", "nodes"]);
  assert.deepEqual(names("ns:a xy"), ["pods", "deployments", "webs"]);
  assert.deepEqual(searched(queryOf("xy", []), [kind("pods", "PodMetrics", "metrics.k8s.io")]), []);
  assert.deepEqual(names("events x"), ["events", "events"]);
});

test("rules permit lists, not those of single names", () => {
  const rule = { verbs: ["get", "list"], apiGroups: ["apps"], resources: ["deployments"] };
  assert.equal(rulesPermitList([rule], ALL[1]), true);
  assert.equal(rulesPermitList([rule], ALL[0]), false);
  assert.equal(rulesPermitList([{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }], ALL[5]), true);
  assert.equal(rulesPermitList([{ ...rule, resourceNames: ["a"] }], ALL[1]), false);
  assert.equal(rulesPermitList([{ verbs: ["list"] }], ALL[1]), false);
});
