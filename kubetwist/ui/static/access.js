// Permissions of the current user, and explanations of authorization decisions.

import * as api from "./api.js";
import { h, problem, replace } from "./dom.js";

const list = (values) => (values || []).map((value) => (value === "" ? "core" : value)).join(", ");

export function accessView(namespace) {
  const where = namespace || "default";
  const body = h("div", { class: "page" }, h("p", { class: "quiet" }, "…"));
  const element = h("div", { class: "main fills" }, h("div", { class: "bar" }, h("h1", null, "My permissions"), h("span", { class: "kind" }, `in namespace ${where} and cluster-wide`)), body);
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: where } };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
  Promise.all([api.whoAmI(), api.json(path, { method: "POST", body: JSON.stringify(review) })]).then(([user, { status }]) => {
    const head = (...names) => h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name))));
    replace(body,
      h("p", null, h("strong", null, user.username), h("span", { class: "quiet" }, user.groups && user.groups.length ? ` in ${user.groups.join(", ")}` : "")),
      status.incomplete ? h("p", { class: "waiting" }, "The list may be incomplete: ", status.evaluationError || "some authorizers cannot list their rules.") : null,
      h("h2", null, "Resources"),
      h("table", { class: "plain" }, head("Verbs", "Resources", "API groups", "Names"), h("tbody", null, (status.resourceRules || []).map((rule) =>
        h("tr", null, h("td", null, list(rule.verbs)), h("td", null, list(rule.resources)), h("td", null, list(rule.apiGroups)), h("td", null, list(rule.resourceNames)))))),
      h("h2", null, "Other paths"),
      h("table", { class: "plain" }, head("Verbs", "Paths"), h("tbody", null, (status.nonResourceRules || []).map((rule) =>
        h("tr", null, h("td", null, list(rule.verbs)), h("td", null, list(rule.nonResourceURLs)))))));
  }).catch((error) => replace(body, problem(error)));
  return { element, title: "My permissions" };
}

const FIELDS = [["user", "User", "you"], ["group", "Groups", "of that user, comma-separated"], ["verb", "Verb", "get, list, create, …"], ["resource", "Resource", "pods, deployments.apps/scale"],
  ["apiGroup", "API group", ""], ["namespace", "Namespace", "the whole cluster"], ["name", "Name", ""], ["path", "or path", "/metrics"]];

export function whyView(query) {
  const inputs = Object.fromEntries(FIELDS.map(([name, , hint]) => [name, h("input", { id: `why-${name}`, name, placeholder: hint, value: query.get(name) || "", spellcheck: false, autocomplete: "off" })]));
  const given = query.has("apiGroup");
  const answer = h("div", { "aria-live": "polite" });
  const ask = async () => {
    const asked = new URLSearchParams();
    for (const [name] of FIELDS) {
      const value = inputs[name].value.trim();
      if (name === "group") { if (value && inputs.user.value.trim()) value.split(",").forEach((one) => asked.append("group", one.trim())); }
      else if (value || (name === "apiGroup" && given && inputs.resource.value === query.get("resource"))) asked.set(name, value);
    }
    try { replace(answer, verdict(await api.json(`/kubetwist/v1/why?${asked}`))); } catch (error) { replace(answer, problem(error)); }
  };
  const form = h("form", { class: "form", onsubmit: (event) => { event.preventDefault(); ask(); } },
    FIELDS.map(([name, title]) => [h("label", { for: `why-${name}` }, title), inputs[name]]), h("span"), h("div", null, h("button", { class: "button main", type: "submit" }, "Ask")));
  if (query.get("verb")) ask();
  return { element: h("div", { class: "main fills" }, h("div", { class: "bar" }, h("h1", null, "Explain an authorization decision")), h("div", { class: "page" }, form, answer)), title: "Why" };
}

function verdict(found) {
  const asked = found.asked;
  return [h("h2", { id: "verdict", class: found.allowed ? "good" : "bad" }, `${asked.user} may ${found.allowed ? "" : "not "}${asked.text || `${asked.verb} ${asked.path}`}`),
    h("table", { class: "plain fit" }, h("tbody", null, found.authorizers.map((one) => h("tr", null, h("td", null, one.name), h("td", null, one.decision), h("td", null, one.reason || one.error || ""))))),
    found.allowedBy ? [h("h2", null, "Allowed by"), h("table", { class: "plain fit" }, h("tbody", null, Object.entries(found.allowedBy).map(([name, value]) =>
      h("tr", null, h("td", null, name), h("td", null, h("code", null, typeof value === "object" ? JSON.stringify(value) : String(value)))))))] : null,
    found.grants && found.grants.length ? [h("h2", null, "The user has"), h("ul", null, found.grants.map((one) => h("li", null, one.text)))] : null,
    found.nearMisses && found.nearMisses.length ? [h("h2", null, "Nearest misses"), h("ol", null, found.nearMisses.map((miss) => h("li", null, miss.why)))] : null,
    found.nearMisses && !found.nearMisses.length ? h("p", { class: "quiet" }, "No similar rules.") : null,
    found.remedy ? [h("h2", null, "To allow it"), h("pre", { id: "remedy" }, found.remedy)] : null];
}
