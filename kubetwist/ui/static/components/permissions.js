// The permissions of the current user.

import * as api from "../core/api.js";
import { h, problem, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @param {string[] | undefined} values */
const list = (values) => (values || []).map((value) => (value === "" ? texts.coreGroup : value)).join(", ");

/** @param {string[]} names */
const head = (names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name))));

/** @param {string[]} names @param {string[][]} rows */
const plainTable = (names, rows) => h("table", { class: "plain" }, head(names), h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell))))));

/**
 * Show the permissions of the current user in an element, when they are known.
 *
 * @param {HTMLElement} body
 * @param {string} where A namespace.
 */
export function showPermissions(body, where) {
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
}
