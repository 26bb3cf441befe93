import assert from "node:assert/strict";
import test from "node:test";

import { grantCommands, grantObjects } from "../../../kubetwist/ui/static/lib/grants.js";

const group = "rbac.authorization.k8s.io";
const bob = { kind: "User", name: "bob", namespace: "" };

test("a binding to an existing role", () => {
  const remedy = "kubectl create rolebinding bob-view --clusterrole=view --user=bob --namespace=demo";
  const objects = grantObjects(remedy, bob);
  assert.deepEqual(objects, [{ apiVersion: `${group}/v1`, kind: "RoleBinding", metadata: { name: "bob-view", namespace: "demo" }, roleRef: { apiGroup: group, kind: "ClusterRole", name: "view" }, subjects: [{ apiGroup: group, kind: "User", name: "bob" }] }]);
  assert.equal(grantCommands(objects), remedy);
});

test("a role for exactly one request", () => {
  for (const remedy of [
    "kubectl create role update-deployments.apps-scale --verb=update --resource=deployments.apps/scale --resource-name=web --namespace=demo\nkubectl create rolebinding robot-update-deployments.apps-scale --role=update-deployments.apps-scale --serviceaccount=ns:robot --namespace=demo",
    "kubectl create clusterrole get-nodes --verb=get --resource=nodes\nkubectl create clusterrolebinding robot-get-nodes --clusterrole=get-nodes --serviceaccount=ns:robot",
    "kubectl create clusterrole get-metrics --verb=get --non-resource-url=/metrics\nkubectl create clusterrolebinding robot-get-metrics --clusterrole=get-metrics --serviceaccount=ns:robot",
  ]) assert.equal(grantCommands(grantObjects(remedy, { kind: "ServiceAccount", name: "robot", namespace: "ns" })), remedy);
});

test("the subject is a group, with any name", () => {
  const name = "team'; rm -rf \"$HOME\" <b>";
  const objects = grantObjects("kubectl create clusterrolebinding 'x-view' --clusterrole=view --user='a member of x'", { kind: "Group", name, namespace: "" });
  assert.deepEqual(objects[0].subjects, [{ apiGroup: group, kind: "Group", name }]);
  assert.match(objects[0].metadata.name, /^[a-z0-9.-]+$/);
  assert.ok(grantCommands(objects).endsWith(`'--group=team'\\''; rm -rf "$HOME" <b>'`));
});

test("other commands are not understood", () => {
  for (const remedy of ["", "rm -rf /", "kubectl delete pods", "kubectl create secret x --a=b", "kubectl create rolebinding x --user=bob", "kubectl create rolebinding x 'y", "kubectl create role x --verb get"]) assert.equal(grantObjects(remedy, bob), null);
});
