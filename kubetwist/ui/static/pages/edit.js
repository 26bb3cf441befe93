// Edit and create objects: an editor, a review of the changes by a dry run, and the write.

import { diffView } from "../components/diffview.js";
import { DraftBar } from "../components/draftbar.js";
import { editor } from "../components/editor.js";
import * as api from "../core/api.js";
import { button, h, loadStyle, problem, replace } from "../core/dom.js";
import { schemasOf } from "../core/openapi.js";
import { listAddress, objectAddress } from "../lib/addresses.js";
import { statusDiagnostics } from "../lib/diagnostics.js";
import { MANAGER, changes, conflictsOf, equal, inexact, removals } from "../lib/patch.js";
import { apiVersionOf, pathOf, questionOf } from "../lib/resources.js";
import { skeleton, templatesOf } from "../lib/templates.js";
import { texts } from "../lib/texts.js";
import { editable } from "../lib/yamlblocks.js";
import { treeOf } from "../lib/yamltree.js";
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

/** Return whether drafts of a resource may be kept in the browser. @param {Resource} resource */
const keepsDrafts = (resource) => resource.group !== "" || resource.resource !== "secrets";

/** Show an error below the editor, and its fields on their lines. @param {import("../components/editor.js").YAMLEditor} area @param {HTMLElement} shown @param {any} error */
function showProblem(area, shown, error) {
  replace(shown, problem(error));
  const found = statusDiagnostics(treeOf(area.value), error.status);
  if (found.length) area.showAnswer(found);
}

/**
 * Show an editor of an object.
 *
 * @param {Target} target
 * @param {HTMLElement} body
 * @param {View} view Its `unsaved` returns whether leaving would lose changes.
 */
export async function editObject({ resource, namespace, name, path }, body, view) {
  const question = questionOf("get", resource, namespace, name);
  const [text] = await Promise.all([api.text(path, { accept: YAML, question }), loadStyle("editor")]);
  /** @type {any} */
  const before = load(text, { schema: CORE_SCHEMA });
  const original = editable(text);
  const shown = h("div", { "aria-live": "polite" });
  const how = h("select", { id: "how", "aria-label": texts.saveMode }, h("option", { value: "apply" }, texts.applyChanges), h("option", { value: "replace" }, texts.replaceObject));
  const forget = () => replace(shown);
  const area = editor(original, () => { forget(); draft.changed(); }, () => review());
  const draft = new DraftBar(objectAddress(resource, namespace, name), area, { original, version: before.metadata.resourceVersion, kept: keepsDrafts(resource) });
  view.unsaved = () => area.value !== original;
  view.close = () => draft.close(!view.unsaved);
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
    if (!conflicts.length) { showProblem(area, shown, error); return; }
    area.showAnswer(statusDiagnostics(treeOf(area.value), error.status));
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

  replace(body, h("div", { class: "edit" }, draft.element, area, area.messages,
    h("div", { class: "row" }, how, button(texts.reviewChanges, () => review(), { id: "review" }),
      h("span", { class: "quiet" }, texts.reviewFirst)),
    shown));
  area.focus();
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
  loadStyle("editor");
  const where = resource.namespaced ? namespace || "default" : "";
  const shown = h("div", { "aria-live": "polite" });
  let template = skeleton(resource, where, null);
  const area = editor(template, () => { replace(shown); draft.changed(); }, () => review());
  const draft = new DraftBar(listAddress(resource, "new"), area, { original: template, kept: keepsDrafts(resource) });
  view.unsaved = () => area.value !== template;
  view.close = () => draft.close(!view.unsaved);
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
      replace(shown, warnings(response), h("p", { class: "quiet" }, texts.wouldCreate), diffView("", editable(text)),
        h("div", { class: "row" }, button(texts.create, save, { class: "main", id: "save" })));
    } catch (error) { showProblem(area, shown, error); }
  };
  const save = async () => {
    try {
      /** @type {any} */
      const made = load(await (await write(false)).text(), { schema: CORE_SCHEMA });
      view.unsaved = null;
      location.hash = made.metadata && made.metadata.name ? objectAddress(resource, made.metadata.namespace, made.metadata.name, "yaml") : listAddress(resource);
    } catch (error) { showProblem(area, shown, error); }
  };
  /** Use a text; the choice of another template can be undone like a change. */
  const use = (/** @type {string} */ text) => {
    const untouched = area.value === template;
    replace(shown);
    template = draft.original = text;
    if (untouched) area.load(text);
    else area.value = text;
    selectName();
  };
  const selectName = () => {
    const found = /^ {2}name: /m.exec(area.value);
    area.goTo(found ? found.index + found[0].length : 0);
  };
  const choices = templatesOf(resource, where);
  let bare = template;
  const choice = h("select", { id: "template", onchange: () => use(choice.value === "" ? bare : choices[Number(choice.value)].text) },
    h("option", { value: "" }, texts.editor.noTemplate), choices.map(({ title }, index) => h("option", { value: String(index) }, title)));
  replace(body, h("div", { class: "edit" },
    h("div", { class: "row" }, choices.length ? h("label", { for: "template" }, texts.editor.template, choice) : null, h("a", { href: "#/apply" }, texts.editor.manyObjects)),
    draft.element, area, area.messages,
    h("div", { class: "row" }, button(texts.review, () => review(), { id: "review" }),
      h("span", { class: "quiet" }, texts.dryRunFirst)), shown));
  selectName();
  // Its required fields are known when the schema has been read.
  schemasOf(apiVersionOf(resource), resource.kind).then((schemas) => {
    bare = skeleton(resource, where, schemas);
    if (area.isConnected && area.value === template && choice.value === "" && bare !== template) use(bare);
  });
}
