// Why one subject may do something or not, and the grant that would allow it.

import * as api from "../core/api.js";
import { button, h, openDialog, problem, replace } from "../core/dom.js";
import { grantCommands, grantObjects } from "../lib/grants.js";
import { groupsOf, nameOf, userOf } from "../lib/rbac.js";
import { texts } from "../lib/texts.js";
import { verdict } from "./verdict.js";

/** The key under which YAML is handed to the page that applies it. */
const HANDOVER = "kubetwist-apply";

/**
 * @typedef {object} Chosen What was chosen in the table.
 * @property {import("../lib/rbac.js").Subject} subject
 * @property {string} name The subject as it is shown.
 * @property {import("../lib/rbac.js").Target} target
 * @property {string} verb
 * @property {string} namespace "" for the whole cluster.
 * @property {import("../lib/rbac.js").Cell} found What the objects of RBAC say.
 * @property {boolean} explains Whether the user may ask the server.
 */

/** @param {Chosen} chosen */
function questionOf({ subject, target, verb, namespace }) {
  // A group has no user: any one of its members is asked about.
  const asked = new URLSearchParams({ user: userOf(subject) || texts.grants.member(subject.name), verb, resource: target.resource, apiGroup: target.group });
  for (const group of groupsOf(subject)) asked.append("group", group);
  if (target.subresource) asked.set("subresource", target.subresource);
  if (namespace) asked.set("namespace", namespace);
  return asked;
}

/** @param {Chosen} chosen */
function source({ found }) {
  const { grant } = found;
  if (!grant) return null;
  const { binding, role, rule } = grant;
  const rows = [
    [binding.metadata.namespace ? "RoleBinding" : "ClusterRoleBinding", `${binding.metadata.namespace ? `${binding.metadata.namespace}/` : ""}${binding.metadata.name}`],
    [role.kind, role.name], [texts.grants.rule, JSON.stringify(rule)],
  ];
  return h("table", { class: "plain fit" }, h("tbody", null, rows.map(([name, value]) => h("tr", null, h("td", null, name), h("td", null, h("code", null, value))))));
}

/**
 * Show the explanation in a dialog.
 *
 * @param {Chosen} chosen
 */
export function openCell(chosen) {
  const { name, verb, target, namespace, found, explains } = chosen, text = texts.grants.cells[found.allowed];
  const title = texts.grants.question(name, verb, nameOf(target), namespace);
  const answer = h("div", { class: "explained", "aria-live": "polite" }, explains ? h("p", { class: "quiet" }, "…") : [h("p", { class: text.tone }, text.meaning), source(chosen), h("p", { class: "quiet" }, texts.grants.noExplanation)]);
  openDialog(title, (dialog) => {
    dialog.classList.add("wide");
    return [h("h1", null, title), answer, h("div", { class: "row" }, button(texts.grants.close, () => dialog.close(), { class: "main", autofocus: true }))];
  });
  if (!explains) return;
  api.json(`/kubetwist/v1/why?${questionOf(chosen)}`).then(async (why) => {
    const { remedy, ...rest } = why;
    const [headline, ...reasons] = verdict(rest), proposed = remedy ? await grant(String(remedy), chosen) : null;
    replace(answer, headline, found.allowed === "named" ? [h("p", { class: "waiting" }, texts.grants.cells.named.meaning), source(chosen)] : null,
      proposed ? [proposed, h("details", null, h("summary", null, texts.grants.reasons), reasons)] : reasons);
  }).catch((error) => replace(answer, problem(error)));
}

/** Return the grant that allows it. @param {string} remedy @param {Chosen} chosen */
async function grant(remedy, { subject }) {
  const objects = grantObjects(remedy, subject), commands = objects ? grantCommands(objects) : remedy;
  const { dump } = await import("../vendor/js-yaml/js-yaml.mjs");
  const yaml = objects?.map((object) => dump(object)).join("---\n") ?? "";
  const review = () => {
    sessionStorage.setItem(HANDOVER, yaml);
    location.hash = "#/apply";
  };
  return [h("h2", null, texts.toAllowIt),
    h("pre", { id: "grant-command" }, commands), h("div", { class: "row" }, button(texts.grants.copyCommand, () => navigator.clipboard.writeText(commands), { id: "copy-command" })),
    objects ? [h("pre", { id: "grant-yaml" }, yaml), h("div", { class: "row" }, button(texts.grants.copyYAML, () => navigator.clipboard.writeText(yaml), { id: "copy-yaml" }), button(texts.grants.review, review, { id: "review-grant" }))] : null];
}
