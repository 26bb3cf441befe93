// The objects that grant a permission: made from the commands that the server proposes.

import { RBAC } from "./rbac.js";
import { commandLine, wordsOf } from "./shellwords.js";

/** @typedef {import("./rbac.js").Subject} Subject */

/** @param {string} text A name, or several, separated by commas. */
const list = (text) => text.split(",");

/** Make the name of an object from any text. @param {string} text */
const inName = (text) => text.toLowerCase().replace(/[^a-z0-9.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 63).replace(/[-.]+$/, "");

/**
 * Return the objects that the proposed commands create, for a subject.
 *
 * @param {string} remedy Commands of kubectl: an optional role, and a binding; one per line.
 * @param {Subject} subject Who gets the permission.
 * @returns {any[] | null} null if the commands are not understood.
 */
export function grantObjects(remedy, subject) {
  const objects = [];
  for (const line of remedy.split("\n").filter((one) => one.trim())) {
    const words = wordsOf(line);
    if (!words || words[0] !== "kubectl" || words[1] !== "create" || words.length < 4) return null;
    const [, , kind, name, ...rest] = words;
    /** @type {Record<string, string>} */
    const flags = {};
    for (const word of rest) {
      const match = /^--([a-z-]+)=([^]*)$/.exec(word);
      if (!match) return null;
      flags[match[1]] = match[2];
    }
    const made = kind === "role" || kind === "clusterrole" ? role(kind, name, flags) : kind === "rolebinding" || kind === "clusterrolebinding" ? binding(kind, flags, subject) : null;
    if (!made) return null;
    objects.push(made);
  }
  return objects.length ? objects : null;
}

/** @param {string} kind @param {string} name @param {Record<string, string>} flags */
function role(kind, name, flags) {
  const [resource, subresource] = (flags.resource ?? "").split("/"), dot = resource.indexOf(".");
  const rule = flags["non-resource-url"] ? { nonResourceURLs: list(flags["non-resource-url"]) } : {
    apiGroups: [dot < 0 ? "" : resource.slice(dot + 1)], resources: [`${dot < 0 ? resource : resource.slice(0, dot)}${subresource ? `/${subresource}` : ""}`],
    ...(flags["resource-name"] ? { resourceNames: [flags["resource-name"]] } : {}),
  };
  return { apiVersion: `${RBAC}/v1`, kind: kind === "role" ? "Role" : "ClusterRole", metadata: { name, ...(kind === "role" ? { namespace: flags.namespace } : {}) }, rules: [{ ...rule, verbs: list(flags.verb ?? "") }] };
}

/** @param {string} kind @param {Record<string, string>} flags @param {Subject} subject */
function binding(kind, flags, subject) {
  const roleRef = flags.clusterrole ? { apiGroup: RBAC, kind: "ClusterRole", name: flags.clusterrole } : { apiGroup: RBAC, kind: "Role", name: flags.role };
  if (!roleRef.name) return null;
  const namespaced = kind === "rolebinding";
  const who = subject.kind === "ServiceAccount" ? { kind: subject.kind, name: subject.name, namespace: subject.namespace } : { apiGroup: RBAC, kind: subject.kind, name: subject.name };
  const metadata = { name: inName(`${subject.name}-${roleRef.name}`), ...(namespaced ? { namespace: flags.namespace } : {}) };
  return { apiVersion: `${RBAC}/v1`, kind: namespaced ? "RoleBinding" : "ClusterRoleBinding", metadata, roleRef, subjects: [who] };
}

/**
 * Return the commands that create such objects.
 *
 * @param {any[]} objects
 */
export const grantCommands = (objects) => objects.map((object) => {
  const words = ["kubectl", "create", object.kind.toLowerCase(), object.metadata.name];
  for (const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } of object.rules ?? []) {
    words.push(`--verb=${verbs.join(",")}`);
    if (nonResourceURLs) { words.push(`--non-resource-url=${nonResourceURLs.join(",")}`); continue; }
    const [resource, subresource] = resources[0].split("/");
    words.push(`--resource=${resource}${apiGroups[0] ? `.${apiGroups[0]}` : ""}${subresource ? `/${subresource}` : ""}`);
    if (resourceNames) words.push(`--resource-name=${resourceNames[0]}`);
  }
  if (object.roleRef) words.push(`--${object.roleRef.kind.toLowerCase()}=${object.roleRef.name}`);
  for (const { kind, name, namespace } of object.subjects ?? []) words.push(kind === "ServiceAccount" ? `--serviceaccount=${namespace}:${name}` : `--${kind.toLowerCase()}=${name}`);
  if (object.metadata.namespace) words.push(`--namespace=${object.metadata.namespace}`);
  return commandLine(words);
}).join("\n");
