// Who may do what: subjects and verbs of one resource, or resources and verbs of one subject, by the objects of RBAC.

import { accessTabs } from "../components/accesstabs.js";
import { openCell } from "../components/accesscell.js";
import { showPermissions } from "../components/permissions.js";
import * as api from "../core/api.js";
import { frame, h, loadStyle, problem, replace } from "../core/dom.js";
import { isSystem, keyOf, nameOf, RBAC, Rules, subjectsOf, targetOf, verbsOf } from "../lib/rbac.js";
import { pathOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/rbac.js").Objects} Objects */
/** @typedef {import("../lib/rbac.js").Subject} Subject */
/** @typedef {import("../lib/rbac.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const KINDS = /** @type {const} */ ({ clusterRoles: "clusterroles", clusterRoleBindings: "clusterrolebindings", roles: "roles", roleBindings: "rolebindings" });
// Rows that are shown at once, and objects per request.
const MAX_ROWS = 500, PAGE = 1000;

/** @param {string} resource @param {string} namespace */
async function listAll(resource, namespace) {
  const found = [], known = api.resourceOf(RBAC, resource);
  if (!known) return [];
  let next = "";
  do {
    const list = await api.json(`${pathOf(known, namespace)}?${new URLSearchParams({ limit: String(PAGE), ...(next ? { continue: next } : {}) })}`);
    found.push(...list.items);
    next = list.metadata.continue ?? "";
  } while (next);
  return found;
}

/**
 * Read the objects of RBAC that the user may list; null if they are not enough for a table.
 *
 * @param {string} namespace Where Roles are read if they may not be read everywhere.
 * @returns {Promise<{ objects: Objects, everywhere: boolean } | null>}
 */
async function readObjects(namespace) {
  const may = (/** @type {string} */ resource, /** @type {string} */ where) => api.mayI({ group: RBAC, resource, verb: "list", ...(where ? { namespace: where } : {}) });
  const allowed = async (/** @type {string} */ where) => (await Promise.all([may(KINDS.roles, where), may(KINDS.roleBindings, where)])).every(Boolean);
  const [roles, bindings, everywhere] = await Promise.all([may(KINDS.clusterRoles, ""), may(KINDS.clusterRoleBindings, ""), allowed("")]);
  if (!roles || !bindings || !(everywhere || (namespace && (await allowed(namespace))))) return null;
  const lists = await Promise.all(Object.values(KINDS).map((resource) => listAll(resource, everywhere ? "" : namespace)));
  return { objects: /** @type {any} */ (Object.fromEntries(Object.keys(KINDS).map((name, index) => [name, lists[index]]))), everywhere };
}

/** @param {Subject} subject */
const subjectText = ({ kind, name, namespace }) => `${texts.grants.kinds[kind]} ${namespace ? `${namespace}/` : ""}${name}`;

/** All resources with their subresources. */
const targets = () => api.resources().flatMap((one) => ["", ...one.subresources].map((subresource) => ({ target: { group: one.group, resource: one.resource, subresource }, verbs: subresource ? [] : one.verbs, namespaced: one.namespaced })));

/**
 * Return the view of who may do what.
 *
 * @param {URLSearchParams} query The first choice.
 * @param {string} namespace The chosen namespace.
 * @returns {Promise<View>}
 */
export async function whoView(query, namespace) {
  await loadStyle("access");
  const body = h("div", { class: "page" }, h("p", { class: "quiet" }, "…"));
  const element = frame(h("h1", null, texts.grants.title), [accessTabs("#/who"), body]);
  const where = query.get("namespace") ?? namespace;
  Promise.all([readObjects(where), api.mayI({ group: "authorization.k8s.io", resource: "subjectaccessreviews", verb: "create" })]).then(([read, explains]) => {
    if (read) { replace(body, table(read.objects, read.everywhere, query, where, explains)); return; }
    const own = h("div");
    replace(body, h("p", { class: "waiting", id: "own-only" }, texts.grants.ownOnly), own);
    showPermissions(own, where || "default");
  }).catch((error) => replace(body, problem(error)));
  return { element, title: texts.grants.title };
}

/**
 * @param {Objects} objects
 * @param {boolean} everywhere Whether Roles of all namespaces are known.
 * @param {URLSearchParams} query
 * @param {string} where A namespace; "" for the whole cluster.
 * @param {boolean} explains Whether the user may ask the server why.
 */
function table(objects, everywhere, query, where, explains) {
  const subjects = subjectsOf(objects), known = targets();
  const field = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string[]} */ options) => {
    const input = h("input", { id: `who-${name}`, value, list: `who-${name}-options`, spellcheck: false, autocomplete: "off", onchange: () => draw() });
    return { input, element: [h("label", { for: `who-${name}` }, /** @type {Record<string, string>} */ (texts.grants.fields)[name], input), h("datalist", { id: `who-${name}-options` }, options.map((one) => h("option", { value: one })))] };
  };
  const namespaces = [...new Set([...objects.roleBindings.map((one) => one.metadata.namespace), ...(where ? [where] : [])])].sort();
  const resource = field("resource", query.get("resource") ?? "pods", known.map(({ target }) => nameOf(target)));
  const namespace = field("namespace", where, namespaces);
  namespace.input.placeholder = texts.grants.wholeCluster;
  namespace.input.disabled = !everywhere;
  const subject = h("select", { id: "who-subject", onchange: () => draw() }, subjects.map((one) => h("option", { value: keyOf(one) }, subjectText(one))));
  const asked = query.get("subject");
  if (asked && subjects.some((one) => keyOf(one) === asked)) subject.value = asked;
  const system = h("input", { type: "checkbox", id: "who-system", checked: query.has("system"), onchange: () => draw() });
  const filter = h("input", { type: "search", id: "who-filter", placeholder: texts.grants.filter, "aria-label": texts.grants.filter, oninput: () => draw() });
  const mode = h("select", { id: "who-by", onchange: () => draw() }, Object.entries(texts.grants.modes).map(([value, text]) => h("option", { value }, text)));
  mode.value = query.get("by") === "subject" ? "subject" : "resource";
  const grid = h("div", { class: "wide-table matrix" }), note = h("p", { class: "quiet", "aria-live": "polite" });
  const ofResource = h("span", { class: "row" }, resource.element), ofSubject = h("label", { for: "who-subject" }, texts.grants.fields.subject, subject);
  const onlySystem = h("label", { for: "who-system" }, system, texts.grants.system);

  function draw() {
    const by = mode.value, rules = new Rules(objects, namespace.input.value.trim());
    ofResource.hidden = onlySystem.hidden = by !== "resource";
    ofSubject.hidden = by !== "subject";
    const words = filter.value.toLowerCase();
    const chosen = subjects.find((one) => keyOf(one) === subject.value);
    const target = targetOf(resource.input.value);
    const address = new URLSearchParams({ by, ...(by === "resource" ? { resource: resource.input.value } : { subject: subject.value }), namespace: namespace.input.value.trim(), ...(system.checked ? { system: "1" } : {}) });
    history.replaceState(null, "", `#/who?${address}`);
    /** @type {{ subject: Subject, target: Target, title: string }[]} */
    let rows = [];
    /** @type {string[]} */
    let verbs = [];
    if (by === "resource" && target) {
      verbs = verbsOf(target, known.find((one) => nameOf(one.target) === nameOf(target))?.verbs ?? []);
      rows = subjects.filter((one) => system.checked || !isSystem(one)).map((one) => ({ subject: one, target, title: subjectText(one) }));
    } else if (by === "subject" && chosen) {
      verbs = verbsOf({ group: "", resource: "", subresource: "" }, []);
      rows = known.filter((one) => !namespace.input.value.trim() || one.namespaced).map((one) => ({ subject: chosen, target: one.target, title: nameOf(one.target) }));
    }
    rows = rows.filter(({ title }) => title.toLowerCase().includes(words));
    const hidden = Math.max(0, rows.length - MAX_ROWS);
    note.textContent = !rows.length ? texts.grants.nothing : hidden ? texts.grants.hidden(hidden) : texts.grants.note;
    replace(grid, rows.length ? h("table", { class: "plain" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, by === "resource" ? texts.grants.fields.subject : texts.grants.fields.resource), verbs.map((verb) => h("th", { scope: "col" }, verb)))),
      h("tbody", null, rows.slice(0, MAX_ROWS).map((row) => h("tr", { "data-row": row.title }, h("th", { scope: "row" }, row.title), verbs.map((verb) => cell(row, verb, rules)))))) : null);
  }

  /** @param {{ subject: Subject, target: Target, title: string }} row @param {string} verb @param {Rules} rules */
  function cell(row, verb, rules) {
    const found = rules.cell(row.subject, verb, row.target), text = texts.grants.cells[found.allowed];
    const open = () => openCell({ ...row, verb, namespace: namespace.input.value.trim(), found, explains, name: subjectText(row.subject) });
    return h("td", null, h("button", { type: "button", class: `cell ${found.allowed}`, "data-verb": verb, "data-allowed": found.allowed, "aria-label": texts.grants.cellLabel(subjectText(row.subject), verb, nameOf(row.target), text.meaning), title: text.meaning, onclick: open }, text.sign));
  }

  draw();
  return [h("div", { class: "row who-choices" }, h("label", { for: "who-by" }, texts.grants.fields.by, mode), ofResource, ofSubject, h("span", { class: "row" }, namespace.element), onlySystem, filter), note, grid];
}
