// Permissions of the current user, and explanations of authorization decisions.

import { accessTabs } from "../components/accesstabs.js";
import { showPermissions } from "../components/permissions.js";
import { verdict } from "../components/verdict.js";
import * as api from "../core/api.js";
import { frame, h, problem, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/types.js").View} View */

/**
 * Return the view of the user's permissions.
 *
 * @param {string} namespace
 * @returns {View}
 */
export function accessView(namespace) {
  const where = namespace || "default";
  const body = h("div", { class: "page" }, h("p", { class: "quiet" }, "…"));
  const element = frame([h("h1", null, texts.myPermissions), h("span", { class: "kind" }, texts.permissionsIn(where))], [accessTabs("#/access"), body]);
  showPermissions(body, where);
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
  return { element: frame(h("h1", null, texts.explainDecision), [accessTabs("#/why"), h("div", { class: "page" }, form, answer)]), title: texts.grants.tabs["#/why"] };
}
