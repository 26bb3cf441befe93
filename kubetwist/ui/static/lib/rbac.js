// What RBAC objects allow: subjects, rules, and tables of both.

/** @typedef {{ kind: string, name: string, namespace: string }} Subject kind: "User", "Group" or "ServiceAccount"; namespace: "" unless it is a service account. */
/** @typedef {{ group: string, resource: string, subresource: string }} Target A resource, or one of its subresources. */
/** @typedef {{ verbs?: string[], apiGroups?: string[], resources?: string[], resourceNames?: string[], nonResourceURLs?: string[] }} Rule */

/**
 * @typedef {object} Objects The objects of RBAC.
 * @property {any[]} clusterRoles
 * @property {any[]} clusterRoleBindings
 * @property {any[]} roles
 * @property {any[]} roleBindings
 */

/**
 * @typedef {object} Grant A rule that allows something, and where it comes from.
 * @property {any} binding
 * @property {{ kind: string, name: string }} role
 * @property {Rule} rule
 */

/**
 * @typedef {object} Cell
 * @property {"yes" | "named" | "no"} allowed "named": for some names only.
 * @property {Grant | null} grant The first one.
 */

export const RBAC = "rbac.authorization.k8s.io";
/** Members of this group may do everything, without any rule. */
export const MASTERS = "system:masters";
const AUTHENTICATED = "system:authenticated", UNAUTHENTICATED = "system:unauthenticated", ANONYMOUS = "system:anonymous", ACCOUNTS = "system:serviceaccounts";
const STANDARD = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/** Verbs that are no requests, by resource. @type {Record<string, string[]>} */
const FURTHER = {
  [`roles.${RBAC}`]: ["bind", "escalate"], [`clusterroles.${RBAC}`]: ["bind", "escalate"], serviceaccounts: ["impersonate"],
  "signers.certificates.k8s.io": ["approve", "sign"],
};

/**
 * Return the name of a resource as kubectl writes it: deployments.apps/scale.
 *
 * @param {Target} target
 */
export const nameOf = ({ group, resource, subresource }) => `${resource}${group ? `.${group}` : ""}${subresource ? `/${subresource}` : ""}`;

/**
 * Parse such a name; null if it is none.
 *
 * @param {string} text
 * @returns {Target | null}
 */
export function targetOf(text) {
  const match = /^([^./\s]+)(?:\.([^/\s]+))?(?:\/(\S+))?$/.exec(text.trim());
  return match ? { resource: match[1], group: match[2] ?? "", subresource: match[3] ?? "" } : null;
}

/**
 * Return the verbs that make sense for a resource.
 *
 * @param {Target} target
 * @param {string[]} served The verbs of discovery; [] if they are not known.
 */
export function verbsOf(target, served) {
  const known = target.subresource || !served.length ? STANDARD : STANDARD.filter((verb) => served.includes(verb));
  return [...known, ...(FURTHER[nameOf(target)] ?? [])];
}

/** @param {any} subject @param {string} [inNamespace] The namespace of the binding. @returns {Subject} */
const subjectOf = ({ kind, name, namespace }, inNamespace = "") => ({ kind: String(kind), name: String(name), namespace: kind === "ServiceAccount" ? String(namespace || inNamespace) : "" });

/** @param {Subject} subject */
export const keyOf = ({ kind, name, namespace }) => JSON.stringify([kind, name, namespace]);

/**
 * Return the user name of a subject; "" for a group.
 *
 * @param {Subject} subject
 */
export const userOf = ({ kind, name, namespace }) => (kind === "ServiceAccount" ? `system:serviceaccount:${namespace}:${name}` : kind === "User" ? name : "");

/**
 * Return the groups to which a subject belongs for certain. Other groups of users come from their credentials.
 *
 * @param {Subject} subject
 */
export function groupsOf({ kind, name, namespace }) {
  if (kind === "ServiceAccount") return [ACCOUNTS, `${ACCOUNTS}:${namespace}`, AUTHENTICATED];
  if (kind === "Group") return name === UNAUTHENTICATED || name === AUTHENTICATED ? [name] : [name, AUTHENTICATED];
  return name === ANONYMOUS ? [UNAUTHENTICATED] : [AUTHENTICATED];
}

/** @param {Subject} subject */
export const isSystem = ({ kind, name, namespace }) => name.startsWith("system:") || (kind === "ServiceAccount" && namespace === "kube-system");

const ORDER = ["User", "Group", "ServiceAccount"];

/**
 * Return all subjects of bindings, sorted by kind and name.
 *
 * @param {Objects} objects
 */
export function subjectsOf({ clusterRoleBindings, roleBindings }) {
  /** @type {Map<string, Subject>} */
  const found = new Map();
  for (const binding of [...clusterRoleBindings, ...roleBindings]) {
    for (const one of binding.subjects ?? []) {
      const subject = subjectOf(one, binding.metadata.namespace);
      if (ORDER.includes(subject.kind) && subject.name) found.set(keyOf(subject), subject);
    }
  }
  const rank = (/** @type {Subject} */ one) => ORDER.indexOf(one.kind);
  return [...found.values()].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name) || a.namespace.localeCompare(b.namespace));
}

/**
 * Return whether a rule allows a verb on a resource, for all names or for some.
 *
 * @param {Rule} rule
 * @param {string} verb
 * @param {Target} target
 * @returns {"yes" | "named" | "no"}
 */
export function allows(rule, verb, { group, resource, subresource }) {
  const has = (/** @type {string[] | undefined} */ values, /** @type {string[]} */ ...wanted) => (values ?? []).some((value) => value === "*" || wanted.includes(value));
  const names = subresource ? [`${resource}/${subresource}`, `*/${subresource}`] : [resource];
  if (!has(rule.verbs, verb) || !has(rule.apiGroups, group) || !has(rule.resources, ...names)) return "no";
  return rule.resourceNames?.length ? "named" : "yes";
}

/** The rules that subjects have, in one namespace or in the whole cluster. */
export class Rules {
  /**
   * @param {Objects} objects
   * @param {string} namespace "" for the whole cluster.
   */
  constructor(objects, namespace) {
    const roles = new Map(objects.clusterRoles.map((role) => [JSON.stringify(["ClusterRole", role.metadata.name]), role]));
    for (const role of objects.roles) if (role.metadata.namespace === namespace) roles.set(JSON.stringify(["Role", role.metadata.name]), role);
    /** The grants by the key of a subject. @type {Map<string, Grant[]>} */
    this.grants = new Map();
    const bindings = [...objects.clusterRoleBindings, ...objects.roleBindings.filter((one) => namespace && one.metadata.namespace === namespace)];
    for (const binding of bindings) {
      const { kind, name } = binding.roleRef ?? {};
      // A binding of the cluster cannot refer to a role of a namespace.
      if (kind === "Role" && !binding.metadata.namespace) continue;
      const role = roles.get(JSON.stringify([kind, name]));
      if (!role) continue;
      const grants = (role.rules ?? []).map((/** @type {Rule} */ rule) => ({ binding, role: { kind, name }, rule }));
      for (const key of new Set((binding.subjects ?? []).map((/** @type {any} */ one) => keyOf(subjectOf(one, binding.metadata.namespace))))) {
        const known = this.grants.get(key);
        if (known) known.push(...grants);
        else this.grants.set(key, [...grants]);
      }
    }
  }

  /**
   * Return the grants of a subject: first its direct ones, then those of its groups.
   *
   * @param {Subject} subject
   */
  of(subject) {
    /** @type {Subject[]} */
    const all = groupsOf(subject).map((name) => ({ kind: "Group", name, namespace: "" }));
    if (subject.kind !== "Group") all.unshift(subject);
    // A service account may also be bound as the user of its name.
    if (subject.kind === "ServiceAccount") all.unshift({ kind: "User", name: userOf(subject), namespace: "" });
    const account = subject.kind === "User" ? /^system:serviceaccount:([^:]+):([^:]+)$/.exec(subject.name) : null;
    if (account) all.unshift({ kind: "ServiceAccount", namespace: account[1], name: account[2] });
    return all.flatMap((one) => this.grants.get(keyOf(one)) ?? []);
  }

  /**
   * Return whether a subject may do something.
   *
   * @param {Subject} subject
   * @param {string} verb
   * @param {Target} target
   * @returns {Cell}
   */
  cell(subject, verb, target) {
    if (subject.kind === "Group" && subject.name === MASTERS) return { allowed: "yes", grant: null };
    /** @type {Cell} */
    let found = { allowed: "no", grant: null };
    for (const grant of this.of(subject)) {
      const allowed = allows(grant.rule, verb, target);
      if (allowed === "yes") return { allowed, grant };
      if (allowed === "named" && found.allowed === "no") found = { allowed, grant };
    }
    return found;
  }
}
