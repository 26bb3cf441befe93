// Finding by words: the meaning of a query, and the ranking of what is found.

import { isSelector, requirementOf, wrongPart } from "./selectors.js";

/** @typedef {import("./types.js").Resource} Resource */

const EXACT = 100, PREFIX = 80, WORD = 60, INSIDE = 40, SUBSEQUENCE = 20;
// Characters of a text beyond which its length makes no difference.
const LONGEST = 90;
// Resources that a name can mean, such as events in two groups.
const MAX_KINDS = 3;

/**
 * Return how well a text matches a word: as a whole, at its beginning, at the beginning of a word in it, inside, or by letters in the
 * same order. Shorter texts match better.
 *
 * @param {string} text
 * @param {string} word In lower case.
 * @returns {number} From 0, no match, to 100.
 */
export function score(text, word) {
  const found = text.toLowerCase();
  if (found === word) return EXACT;
  const shorter = 9 - Math.min(text.length, LONGEST) / 10;
  if (found.startsWith(word)) return PREFIX + shorter;
  for (let at = found.indexOf(word); at >= 0; at = found.indexOf(word, at + 1)) {
    const before = text[at - 1], first = text[at];
    // A word begins after other characters, and at a capital.
    if (!/[a-z0-9]/i.test(before) || (/[a-z0-9]/.test(before) && /[A-Z]/.test(first))) return WORD + shorter;
  }
  if (found.includes(word)) return INSIDE + shorter;
  let next = 0;
  for (const letter of found) if (letter === word[next]) next++;
  // Two letters in order are in nearly every text.
  return next === word.length && word.length > 2 ? SUBSEQUENCE + shorter : 0;
}

/**
 * Return how well texts match all words; the first text counts most, and only there are letters in the same order a match: labels
 * are long.
 *
 * @param {string[]} texts
 * @param {string[]} words
 * @returns {number} From 0, where a word matches none of them, to 100.
 */
export function rank(texts, words) {
  let sum = 0;
  for (const word of words) {
    const [first, ...more] = texts.map((text) => score(text, word));
    const best = Math.max(first, ...more.map((one) => (one < INSIDE ? 0 : one * 0.8)));
    if (best <= 0) return 0;
    sum += best;
  }
  return words.length ? sum / words.length : 1;
}

/**
 * @typedef {object} Query
 * @property {Resource[]} kinds The kinds that it names; empty for all.
 * @property {string} namespace "" for all.
 * @property {string[]} labels Requirements of a label selector.
 * @property {string[]} words In lower case.
 */

/** @param {Resource} resource */
const namesOf = ({ resource, kind, group, shortNames }) => [resource, kind.toLowerCase(), `${resource}.${group}`, ...shortNames];

/** @param {string} name @param {Resource[]} resources */
const kindsNamed = (name, resources) => resources.filter((one) => one.verbs.includes("list") && namesOf(one).includes(name)).slice(0, MAX_KINDS);

/**
 * Return the meaning of a query: "pod web", "deploy/web", "ns:team-a", "app=web", or words.
 *
 * @param {string} text
 * @param {Resource[]} resources
 * @returns {Query}
 */
export function queryOf(text, resources) {
  /** @type {Query} */
  const query = { kinds: [], namespace: "", labels: [], words: [] };
  for (const term of text.split(/\s+/).filter(Boolean)) {
    const namespace = /^(?:ns|namespace):(.+)$/.exec(term);
    if (namespace) query.namespace = namespace[1];
    else if (isSelector(term)) {
      // While it is typed, a requirement has no value yet.
      if (!wrongPart(term) && (requirementOf(term)?.values ?? []).every(Boolean)) query.labels.push(term);
    } else if (!/^(?:ns|namespace):$/.test(term)) query.words.push(term.toLowerCase());
  }
  const [first, ...rest] = query.words, slash = first?.indexOf("/") ?? -1;
  if (slash > 0) {
    const kinds = kindsNamed(first.slice(0, slash), resources), name = first.slice(slash + 1);
    if (kinds.length) Object.assign(query, { kinds, words: name ? [name, ...rest] : rest });
  } else if (first && (rest.length || query.labels.length || query.namespace || /\s$/.test(text))) {
    const kinds = kindsNamed(first, resources);
    if (kinds.length) Object.assign(query, { kinds, words: rest });
  }
  return query;
}

/** Whether objects are searched at all: one letter matches too many. @param {Query} query */
export const searchesObjects = ({ kinds, namespace, labels, words }) => kinds.length > 0 || labels.length > 0 || words.some((word) => word.length > 1) || (namespace !== "" && words.length > 0);

// Kinds in which users search most, in this order.
const FIRST = ["pods", "deployments", "services", "configmaps", "secrets", "statefulsets", "daemonsets", "jobs", "cronjobs", "ingresses", "nodes", "namespaces", "persistentvolumeclaims", "serviceaccounts"];
// Kinds with names that say nothing.
const NEVER = ["events", "componentstatuses"];
// Groups whose objects are values about objects of the same name.
const NEVER_GROUPS = ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];

/**
 * Return the resources whose objects a query searches, those first that most likely have them.
 *
 * @param {Query} query
 * @param {Resource[]} resources
 */
export function searched({ kinds, namespace, words }, resources) {
  if (kinds.length) return kinds;
  const place = (/** @type {Resource} */ one) => {
    const first = FIRST.indexOf(one.resource);
    return words.some((word) => score(one.resource, word) >= WORD) ? -1 : first >= 0 ? first : FIRST.length;
  };
  return resources.filter((one) => one.verbs.includes("list") && !one.stale && !NEVER.includes(one.resource) && !NEVER_GROUPS.includes(one.group) && (one.namespaced || !namespace)).sort((a, b) => place(a) - place(b));
}

/**
 * Return whether rules permit listing a resource.
 *
 * @param {{ verbs: string[], apiGroups?: string[], resources?: string[], resourceNames?: string[] }[]} rules Of a SelfSubjectRulesReview.
 * @param {{ group: string, resource: string }} resource
 */
export function rulesPermitList(rules, { group, resource }) {
  const has = (/** @type {string[] | undefined} */ list, /** @type {string} */ one) => Boolean(list?.includes("*") || list?.includes(one));
  return rules.some((rule) => has(rule.verbs, "list") && has(rule.apiGroups, group) && has(rule.resources, resource) && !rule.resourceNames?.length);
}
