// Edit and create objects: an editor, a review of the changes by a dry run, and the write.

import * as api from "./api.js";
import { listAddress, objectAddress } from "./app.js";
import { diffView } from "./diff.js";
import { h, problem, replace } from "./dom.js";
import { MANAGER, changes, equal, inexact, removals } from "./patch.js";
import { CORE_SCHEMA, load } from "./vendor/js-yaml/js-yaml.mjs";
import { editable } from "./yaml.js";

const YAML = "application/yaml";
const parse = (text) => {
  let found;
  try { found = load(text, { schema: CORE_SCHEMA }); } catch (error) { throw new Error(error.reason ? `${error.reason}, in line ${error.mark.line + 1}` : "not valid YAML"); }
  if (found === null || typeof found !== "object" || Array.isArray(found) || !found.metadata || typeof found.metadata !== "object") throw new Error("not an object with metadata");
  if (inexact(found)) throw new Error("the object has integers that a browser cannot represent exactly: use kubectl");
  return found;
};

/** Create a text area with line numbers. */
function editor(text, changed) {
  const numbers = h("pre", { "aria-hidden": "true" });
  const area = h("textarea", { "aria-label": "YAML", "aria-description": "Escape, then Tab, leaves it; Control and Enter review.", spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", value: text });
  const count = () => {
    const lines = area.value.split("\n").length;
    if (Number(numbers.dataset.lines) === lines) return;
    numbers.dataset.lines = String(lines);
    numbers.textContent = Array.from({ length: lines }, (_, index) => index + 1).join("\n");
    numbers.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", () => { count(); changed(); });
  area.addEventListener("scroll", () => { numbers.scrollTop = area.scrollTop; });
  area.addEventListener("keydown", (event) => {
    // Tab indents; after Escape it moves the focus as usual.
    if (event.key === "Escape") { area.blur(); event.stopPropagation(); }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); document.querySelector("#review").click(); }
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    area.setRangeText("  ", area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  });
  count();
  return { element: h("div", { class: "editor" }, numbers, area), area };
}

function conflictsOf(error) {
  const causes = (error.status && error.status.details && error.status.details.causes) || [];
  return causes.filter((cause) => cause.reason === "FieldManagerConflict").map((cause) => {
    const manager = /^conflict with "(.*?)"/.exec(cause.message || "");
    return { field: cause.field || "", manager: manager ? manager[1] : cause.message || "" };
  });
}

const conflictTable = (conflicts) => h("table", { class: "plain", id: "conflicts" },
  h("thead", null, h("tr", null, h("th", null, "Field"), h("th", null, "Manager"))),
  h("tbody", null, conflicts.map((one) => h("tr", null, h("td", null, h("code", null, one.field)), h("td", null, one.manager)))));

const warnings = (response) => {
  const warning = response.headers.get("warning");
  return warning ? h("p", { class: "waiting" }, warning.replace(/^299 \S+ /, "")) : null;
};

/** Show an editor of an object in `body`; view.unsaved() returns whether leaving would lose changes. */
export async function editObject({ resource, namespace, name, path }, body, view) {
  const question = api.questionOf("get", resource, namespace, name);
  const text = await api.text(path, { accept: YAML, question });
  const before = load(text, { schema: CORE_SCHEMA });
  const original = editable(text);
  const shown = h("div", { "aria-live": "polite" });
  const how = h("select", { id: "how", "aria-label": "Save mode" }, h("option", { value: "apply" }, "Apply my changes"), h("option", { value: "replace" }, "Replace the whole object"));
  const forget = () => replace(shown);
  const { element, area } = editor(original, forget);
  view.unsaved = () => area.value !== original;
  how.addEventListener("change", forget);

  const write = async (force, dry) => {
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
      if (equal(parse(original), after)) { replace(shown, h("p", { class: "quiet" }, "No changes.")); return; }
      const response = await write(force, true);
      const result = await response.text();
      const changed = diffView(original, editable(result));
      const kept = load(result, { schema: CORE_SCHEMA });
      const left = removals(parse(original), after).filter((field) => !removals(parse(original), kept).includes(field));
      replace(shown, warnings(response),
        left.length ? h("p", { class: "waiting" }, "These fields are kept, as they have other owners or defaults: ", h("code", null, left.join(", "))) : null,
        changed || h("p", { class: "quiet" }, "No changes."),
        changed ? h("div", { class: "row" }, h("button", { class: "button main", type: "button", id: "save", onclick: () => save(force) }, force ? "Force apply" : "Save")) : null);
    } catch (error) { refused(error, force); }
  };

  const refused = (error, force) => {
    const conflicts = force ? [] : conflictsOf(error);
    if (!conflicts.length) { replace(shown, problem(error)); return; }
    replace(shown, h("div", { class: "problem", role: "alert" }, h("strong", null, "Conflict "), "Other field managers own fields that you changed. Nothing was saved.", conflictTable(conflicts)),
      h("div", { class: "row" }, h("button", { class: "button danger", type: "button", id: "force", onclick: () => review(true) }, "Force apply…")));
  };

  const save = async (force) => {
    try {
      await write(force, false);
      view.unsaved = null;
      location.hash = objectAddress(resource, namespace, name);
    } catch (error) { refused(error, force); }
  };

  replace(body, h("div", { class: "edit" }, element,
    h("div", { class: "row" }, how, h("button", { class: "button", type: "button", id: "review", onclick: () => review() }, "Review changes"),
      h("span", { class: "quiet" }, "Changes are written after you have reviewed them.")),
    shown));
  area.focus();
  area.setSelectionRange(0, 0);
  area.scrollTop = 0;
}

export function createObject(resource, namespace, body, view) {
  const version = resource.group ? `${resource.group}/${resource.version}` : resource.version;
  const where = resource.namespaced ? `  namespace: ${namespace || "default"}\n` : "";
  const shown = h("div", { "aria-live": "polite" });
  const { element, area } = editor(`apiVersion: ${version}\nkind: ${resource.kind}\nmetadata:\n  name: \n${where}`, () => replace(shown));
  const template = area.value;
  view.unsaved = () => area.value !== template;
  const write = (dry) => {
    const made = parse(area.value);
    const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict" });
    if (dry) query.set("dryRun", "All");
    const there = resource.namespaced ? String(made.metadata.namespace || namespace || "default") : "";
    return api.ask(`${api.pathOf(resource, there)}?${query}`, { method: "POST", body: JSON.stringify(made), accept: YAML, question: api.questionOf("create", resource, there) });
  };
  const review = async () => {
    try {
      const response = await write(true);
      const text = await response.text();
      replace(shown, warnings(response), h("p", { class: "quiet" }, "This would be created:"), diffView("", text),
        h("div", { class: "row" }, h("button", { class: "button main", type: "button", id: "save", onclick: save }, "Create")));
    } catch (error) { replace(shown, problem(error)); }
  };
  const save = async () => {
    try {
      const made = load(await (await write(false)).text(), { schema: CORE_SCHEMA });
      view.unsaved = null;
      location.hash = made.metadata && made.metadata.name ? objectAddress(resource, made.metadata.namespace, made.metadata.name) : listAddress(resource);
    } catch (error) { replace(shown, problem(error)); }
  };
  replace(body, h("div", { class: "edit" }, element,
    h("div", { class: "row" }, h("button", { class: "button", type: "button", id: "review", onclick: review }, "Review"),
      h("span", { class: "quiet" }, "The server validates the object first by a dry run.")), shown));
  area.focus();
  const end = area.value.indexOf("name: ") + 6;
  area.setSelectionRange(end, end);
}
