// Edit and create objects: an editor, a review of the changes by a dry run, and the write.

import { diffView } from "../components/diffview.js";
import { editor } from "../components/editor.js";
import * as api from "../core/api.js";
import { button, h, problem, replace } from "../core/dom.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { MANAGER, changes, conflictsOf, equal, inexact, removals } from "../lib/patch.js";
import { apiVersionOf, pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { editable } from "../lib/yamlblocks.js";
import { CORE_SCHEMA, load } from "../vendor/js-yaml/js-yaml.mjs";

/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").Target} Target */
/** @typedef {import("../lib/types.js").View} View */

const YAML = "application/yaml";

/**
 * Parse an edited object.
 *
 * @param {string} text
 * @returns {any}
 * @throws {Error} The text is not an object with metadata.
 */
function parse(text) {
  /** @type {any} */
  let found;
  try { found = load(text, { schema: CORE_SCHEMA }); } catch (error) { throw new Error(error.reason ? texts.inLine(error.reason, error.mark.line + 1) : texts.notYAML); }
  if (found === null || typeof found !== "object" || Array.isArray(found) || !found.metadata || typeof found.metadata !== "object") throw new Error(texts.noMetadata);
  if (inexact(found)) throw new Error(texts.inexact);
  return found;
}

/** @param {{ field: string, manager: string }[]} conflicts */
const conflictTable = (conflicts) => h("table", { class: "plain", id: "conflicts" },
  h("thead", null, h("tr", null, h("th", null, texts.field), h("th", null, texts.manager))),
  h("tbody", null, conflicts.map((one) => h("tr", null, h("td", null, h("code", null, one.field)), h("td", null, one.manager)))));

/** @param {Response} response */
const warnings = (response) => {
  const warning = response.headers.get("warning");
  return warning ? h("p", { class: "waiting" }, warning.replace(/^299 \S+ /, "")) : null;
};

/**
 * Show an editor of an object.
 *
 * @param {Target} target
 * @param {HTMLElement} body
 * @param {View} view Its `unsaved` returns whether leaving would lose changes.
 */
export async function editObject({ resource, namespace, name, path }, body, view) {
  const question = questionOf("get", resource, namespace, name);
  const text = await api.text(path, { accept: YAML, question });
  /** @type {any} */
  const before = load(text, { schema: CORE_SCHEMA });
  const original = editable(text);
  const shown = h("div", { "aria-live": "polite" });
  const how = h("select", { id: "how", "aria-label": texts.saveMode }, h("option", { value: "apply" }, texts.applyChanges), h("option", { value: "replace" }, texts.replaceObject));
  const forget = () => replace(shown);
  const { element, area } = editor(original, forget);
  view.unsaved = () => area.value !== original;
  how.addEventListener("change", forget);

  const write = async (/** @type {boolean} */ force, /** @type {boolean} */ dry) => {
    const after = parse(area.value);
    const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict" });
    if (dry) query.set("dryRun", "All");
    if (how.value === "replace") {
      after.metadata = { ...after.metadata, resourceVersion: before.metadata.resourceVersion };
      if (before.status !== undefined) after.status = before.status;
      return api.ask(`${path}?${query}`, { method: "PUT", accept: YAML, body: JSON.stringify(after), question: { ...question, verb: "update" } });
    }
    if (force) query.set("force", "true");
    return api.ask(`${path}?${query}`, { method: "PATCH", accept: YAML, type: "application/apply-patch+yaml", body: JSON.stringify(changes(before, after)), question: { ...question, verb: "patch" } });
  };

  const review = async (force = false) => {
    try {
      const after = parse(area.value);
      if (equal(parse(original), after)) { replace(shown, h("p", { class: "quiet" }, texts.noChanges)); return; }
      const response = await write(force, true);
      const result = await response.text();
      const changed = diffView(original, editable(result));
      /** @type {any} */
      const kept = load(result, { schema: CORE_SCHEMA });
      const left = removals(parse(original), after).filter((field) => !removals(parse(original), kept).includes(field));
      replace(shown, warnings(response),
        left.length ? h("p", { class: "waiting" }, texts.fieldsKept, h("code", null, left.join(", "))) : null,
        changed || h("p", { class: "quiet" }, texts.noChanges),
        changed ? h("div", { class: "row" }, button(force ? texts.forceApply : texts.save, () => save(force), { class: "main", id: "save" })) : null);
    } catch (error) { refused(error, force); }
  };

  const refused = (/** @type {any} */ error, /** @type {boolean} */ force) => {
    const conflicts = force ? [] : conflictsOf(error);
    if (!conflicts.length) { replace(shown, problem(error)); return; }
    replace(shown, h("div", { class: "problem", role: "alert" }, h("strong", null, texts.conflict, " "), texts.conflictMeaning, conflictTable(conflicts)),
      h("div", { class: "row" }, button(texts.forceApplyAsk, () => review(true), { class: "danger", id: "force" })));
  };

  const save = async (/** @type {boolean} */ force) => {
    try {
      await write(force, false);
      view.unsaved = null;
      location.hash = objectAddress(resource, namespace, name, "yaml");
    } catch (error) { refused(error, force); }
  };

  replace(body, h("div", { class: "edit" }, element,
    h("div", { class: "row" }, how, button(texts.reviewChanges, () => review(), { id: "review" }),
      h("span", { class: "quiet" }, texts.reviewFirst)),
    shown));
  area.focus();
  area.setSelectionRange(0, 0);
  area.scrollTop = 0;
}

/**
 * Show an editor with a new object.
 *
 * @param {Resource} resource
 * @param {string} namespace
 * @param {HTMLElement} body
 * @param {View} view Its `unsaved` returns whether leaving would lose changes.
 */
export function createObject(resource, namespace, body, view) {
  const where = resource.namespaced ? `  namespace: ${namespace || "default"}\n` : "";
  const shown = h("div", { "aria-live": "polite" });
  const { element, area } = editor(`apiVersion: ${apiVersionOf(resource)}\nkind: ${resource.kind}\nmetadata:\n  name: \n${where}`, () => replace(shown));
  const template = area.value;
  view.unsaved = () => area.value !== template;
  const write = (/** @type {boolean} */ dry) => {
    const made = parse(area.value);
    const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict" });
    if (dry) query.set("dryRun", "All");
    const there = resource.namespaced ? String(made.metadata.namespace || namespace || "default") : "";
    return api.ask(`${pathOf(resource, there)}?${query}`, { method: "POST", body: JSON.stringify(made), accept: YAML, question: questionOf("create", resource, there) });
  };
  const review = async () => {
    try {
      const response = await write(true);
      const text = await response.text();
      replace(shown, warnings(response), h("p", { class: "quiet" }, texts.wouldCreate), diffView("", text),
        h("div", { class: "row" }, button(texts.create, save, { class: "main", id: "save" })));
    } catch (error) { replace(shown, problem(error)); }
  };
  const save = async () => {
    try {
      /** @type {any} */
      const made = load(await (await write(false)).text(), { schema: CORE_SCHEMA });
      view.unsaved = null;
      location.hash = made.metadata && made.metadata.name ? objectAddress(resource, made.metadata.namespace, made.metadata.name, "yaml") : listAddress(resource);
    } catch (error) { replace(shown, problem(error)); }
  };
  replace(body, h("div", { class: "edit" }, element,
    h("div", { class: "row" }, button(texts.review, review, { id: "review" }),
      h("span", { class: "quiet" }, texts.dryRunFirst)), shown));
  area.focus();
  const end = area.value.indexOf("name: ") + 6;
  area.setSelectionRange(end, end);
}
