import assert from "node:assert/strict";
import test from "node:test";

import { allows, groupsOf, isSystem, nameOf, Rules, subjectsOf, targetOf, userOf, verbsOf } from "../../../kubetwist/ui/static/lib/rbac.js";

const group = "rbac.authorization.k8s.io";
const role = (name, rules, namespace) => ({ metadata: { name, ...(namespace ? { namespace } : {}) }, rules });
const binding = (name, ref, subjects, namespace) => ({ metadata: { name, ...(namespace ? { namespace } : {}) }, roleRef: { kind: ref.split("/")[0], name: ref.split("/")[1] }, subjects });
const user = { kind: "User", name: "bob", namespace: "" }, account = { kind: "ServiceAccount", name: "robot", namespace: "ns" };
const pods = { group: "", resource: "pods", subresource: "" };
const reads = { verbs: ["get"], apiGroups: [""], resources: ["pods"] };
const nothing = { clusterRoles: [], clusterRoleBindings: [], roles: [], roleBindings: [] };

test("names of resources are parsed and written", () => {
  for (const text of ["pods", "pods/log", "deployments.apps", "deployments.apps/scale", `roles.${group}`]) assert.equal(nameOf(targetOf(text)), text);
  assert.deepEqual(targetOf("deployments.apps/scale"), { group: "apps", resource: "deployments", subresource: "scale" });
  for (const text of ["", "a b", "/x", "."]) assert.equal(targetOf(text), null);
});

test("rules match verbs, groups, resources and subresources", () => {
  const rule = { verbs: ["get", "list"], apiGroups: ["", "apps"], resources: ["pods", "pods/log", "*/scale"] };
  const asks = (verb, text, rules = rule) => allows(rules, verb, targetOf(text));
  assert.deepEqual([asks("get", "pods"), asks("get", "pods/log"), asks("get", "deployments.apps/scale"), asks("list", "pods.apps")], ["yes", "yes", "yes", "yes"]);
  assert.deepEqual([asks("create", "pods"), asks("get", "secrets"), asks("get", "pods/exec"), asks("get", "pods.batch")], ["no", "no", "no", "no"]);
  assert.equal(asks("delete", "x.y/z", { verbs: ["*"], apiGroups: ["*"], resources: ["*"] }), "yes");
  assert.equal(asks("get", "pods", { ...rule, resourceNames: ["a"] }), "named");
  assert.equal(asks("get", "pods", { verbs: ["*"], nonResourceURLs: ["*"] }), "no");
});

test("subjects of all bindings are found once, in order", () => {
  const objects = { ...nothing, clusterRoleBindings: [binding("a", "ClusterRole/x", [user, { kind: "Group", name: "qa" }])],
    roleBindings: [binding("b", "Role/x", [{ kind: "ServiceAccount", name: "robot" }, user], "ns"), binding("c", "Role/x", undefined, "ns"), binding("d", "Role/x", [{ kind: "Other", name: "x" }], "ns")] };
  assert.deepEqual(subjectsOf(objects), [user, { kind: "Group", name: "qa", namespace: "" }, account]);
});

test("subjects have implied groups", () => {
  assert.deepEqual(groupsOf(account), ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]);
  assert.deepEqual(groupsOf(user), ["system:authenticated"]);
  assert.deepEqual(groupsOf({ ...user, name: "system:anonymous" }), ["system:unauthenticated"]);
  assert.deepEqual(groupsOf({ kind: "Group", name: "qa", namespace: "" }), ["qa", "system:authenticated"]);
  assert.deepEqual(groupsOf({ kind: "Group", name: "system:unauthenticated", namespace: "" }), ["system:unauthenticated"]);
  assert.deepEqual([userOf(account), userOf(user), userOf({ kind: "Group", name: "x", namespace: "" })], ["system:serviceaccount:ns:robot", "bob", ""]);
  assert.deepEqual([isSystem(user), isSystem({ ...user, name: "system:x" }), isSystem({ ...account, namespace: "kube-system" })], [false, true, true]);
});

test("bindings of a namespace count there only", () => {
  const objects = { clusterRoles: [role("reader", [reads])], roles: [role("reader", [{ ...reads, verbs: ["list"] }], "ns"), role("reader", [{ ...reads, verbs: ["watch"] }], "other")],
    clusterRoleBindings: [binding("wrong", "Role/reader", [user]), binding("missing", "ClusterRole/none", [user])],
    roleBindings: [binding("a", "ClusterRole/reader", [user], "ns"), binding("b", "Role/reader", [user], "ns")] };
  const allowed = (namespace) => ["get", "list", "watch"].filter((verb) => new Rules(objects, namespace).cell(user, verb, pods).allowed === "yes");
  assert.deepEqual([allowed("ns"), allowed("other"), allowed("")], [["get", "list"], [], []]);
  const { grant } = new Rules(objects, "ns").cell(user, "list", pods);
  assert.deepEqual([grant.binding.metadata.name, grant.role, grant.rule.verbs], ["b", { kind: "Role", name: "reader" }, ["list"]]);
});

test("groups, service accounts by both names, and masters", () => {
  const bound = (subject) => new Rules({ ...nothing, clusterRoles: [role("reader", [reads])], clusterRoleBindings: [binding("a", "ClusterRole/reader", [subject])] }, "");
  const may = (rules, subject) => rules.cell(subject, "get", pods).allowed === "yes";
  assert.ok(may(bound({ kind: "Group", name: "system:serviceaccounts:ns" }), account));
  assert.ok(may(bound({ kind: "Group", name: "system:authenticated" }), user));
  assert.ok(may(bound({ kind: "User", name: "system:serviceaccount:ns:robot" }), account));
  assert.ok(may(bound(account), { kind: "User", name: "system:serviceaccount:ns:robot", namespace: "" }));
  assert.ok(!may(bound({ kind: "Group", name: "bob" }), user));
  assert.ok(may(bound(user), { kind: "Group", name: "system:masters", namespace: "" }));
});

test("a rule for all names is preferred to one for some", () => {
  const objects = { ...nothing, clusterRoles: [role("x", [{ ...reads, resourceNames: ["a"] }, reads])], clusterRoleBindings: [binding("a", "ClusterRole/x", [user])] };
  assert.equal(new Rules(objects, "").cell(user, "get", pods).allowed, "yes");
  objects.clusterRoles[0].rules.pop();
  assert.equal(new Rules(objects, "").cell(user, "get", pods).allowed, "named");
});

test("verbs of a resource are those that it serves, and special ones", () => {
  assert.deepEqual(verbsOf(pods, ["get", "create"]), ["get", "create"]);
  assert.equal(verbsOf(targetOf("pods/log"), ["get"]).length, 8);
  assert.deepEqual(verbsOf(targetOf(`roles.${group}`), ["get"]), ["get", "bind", "escalate"]);
});
