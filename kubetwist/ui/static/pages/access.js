// Permissions of the current user, and explanations of authorization decisions.

import * as api from "../core/api.js";
import { frame, h, problem, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").View} View */

/** @param {string[] | undefined} values */
const list = (values) => (values || []).map((value) => (value === "" ? texts.coreGroup : value)).join(", ");

/** @param {string[]} names */
const head = (names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name))));

/** @param {string[]} names @param {string[][]} rows */
const plainTable = (names, rows) => h("table", { class: "plain" }, head(names), h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell))))));

/**
 * Return the view of the user's permissions.
 *
 * @param {string} namespace
 * @returns {View}
 */
export function accessView(namespace) {
  const where = namespace || "default";
  const body = h("div", { class: "page" }, h("p", { class: "quiet" }, "…"));
  const element = frame([h("h1", null, texts.myPermissions), h("span", { class: "kind" }, texts.permissionsIn(where))], body);
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: where } };
  Promise.all([api.whoAmI(), api.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)]).then(([user, { status }]) => {
    /** @type {{ verbs: string[], resources?: string[], apiGroups?: string[], resourceNames?: string[] }[]} */
    const resources = status.resourceRules || [];
    /** @type {{ verbs: string[], nonResourceURLs?: string[] }[]} */
    const paths = status.nonResourceRules || [];
    replace(body,
      h("p", null, h("strong", null, user.username), h("span", { class: "quiet" }, user.groups?.length ? texts.inGroups(user.groups.join(", ")) : "")),
      status.incomplete ? h("p", { class: "waiting" }, texts.incomplete, status.evaluationError || texts.unlistedRules) : null,
      h("h2", null, texts.resources),
      plainTable(texts.resourceRuleColumns, resources.map((rule) => [rule.verbs, rule.resources, rule.apiGroups, rule.resourceNames].map(list))),
      h("h2", null, texts.otherPaths),
      plainTable(texts.pathRuleColumns, paths.map((rule) => [rule.verbs, rule.nonResourceURLs].map(list))));
  }).catch((error) => replace(body, problem(error)));
  return { element, title: texts.myPermissions };
}

/**
 * Return the view of explanations of authorization decisions.
 *
 * @param {URLSearchParams} query A question to begin with.
 * @returns {View}
 */
export function whyView(query) {
  const fields = Object.entries(texts.whyFields);
  const inputs = Object.fromEntries(fields.map(([name, [, hint]]) => [name, h("input", { id: `why-${name}`, name, placeholder: hint, value: query.get(name) || "", spellcheck: false, autocomplete: "off" })]));
  const given = query.has("apiGroup");
  const answer = h("div", { "aria-live": "polite" });
  const ask = async () => {
    const asked = new URLSearchParams();
    for (const [name, input] of Object.entries(inputs)) {
      const value = input.value.trim();
      if (name === "group") { if (value && inputs.user.value.trim()) value.split(",").forEach((one) => asked.append("group", one.trim())); }
      else if (value || (name === "apiGroup" && given && inputs.resource.value === query.get("resource"))) asked.set(name, value);
    }
    try { replace(answer, verdict(await api.json(`/kubetwist/v1/why?${asked}`))); } catch (error) { replace(answer, problem(error)); }
  };
  const form = h("form", { class: "form", onsubmit: (/** @type {SubmitEvent} */ event) => { event.preventDefault(); ask(); } },
    fields.map(([name, [title]]) => [h("label", { for: `why-${name}` }, title), inputs[name]]), h("span"), h("div", null, h("button", { class: "button main", type: "submit" }, texts.ask)));
  if (query.get("verb")) ask();
  return { element: frame(h("h1", null, texts.explainDecision), h("div", { class: "page" }, form, answer)), title: texts.why };
}

/**
 * Return the elements of an answer.
 *
 * @param {any} found The answer of /kubetwist/v1/why.
 */
function verdict(found) {
  const asked = found.asked;
  const plain = (/** @type {string[][]} */ rows) => h("table", { class: "plain fit" }, h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell))))));
  const code = (/** @type {unknown} */ value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  /** @type {{ name: string, decision: string, reason?: string, error?: string }[]} */
  const authorizers = found.authorizers;
  /** @type {{ text: string }[]} */
  const grants = found.grants || [];
  /** @type {{ why: string }[] | undefined} */
  const misses = found.nearMisses;
  return [h("h2", { id: "verdict", class: found.allowed ? "good" : "bad" }, texts.verdict(asked.user, found.allowed, asked.text || `${asked.verb} ${asked.path}`)),
    plain(authorizers.map((one) => [one.name, one.decision, one.reason || one.error || ""])),
    found.allowedBy ? [h("h2", null, texts.allowedBy), h("table", { class: "plain fit" }, h("tbody", null, Object.entries(found.allowedBy).map(([name, value]) =>
      h("tr", null, h("td", null, name), h("td", null, h("code", null, code(value)))))))] : null,
    grants.length ? [h("h2", null, texts.userHas), h("ul", null, grants.map((one) => h("li", null, one.text)))] : null,
    misses?.length ? [h("h2", null, texts.nearestMisses), h("ol", null, misses.map((miss) => h("li", null, miss.why)))] : null,
    misses && !misses.length ? h("p", { class: "quiet" }, texts.noSimilarRules) : null,
    found.remedy ? [h("h2", null, texts.toAllowIt), h("pre", { id: "remedy" }, found.remedy)] : null];
}
