// Apply many objects: texts of an editor and of files, a plan by dry runs, and the writes.

import { diffView } from "../components/diffview.js";
import { DraftBar } from "../components/draftbar.js";
import { editor } from "../components/editor.js";
import * as api from "../core/api.js";
import { button, frame, h, loadStyle, problem, replace } from "../core/dom.js";
import { chosenFiles, droppedFiles } from "../core/files.js";
import { objectAddress } from "../lib/addresses.js";
import { forAll } from "../lib/bulk.js";
import { definedKinds, groupOf, manifestsOf, namespacesOf, rankOf } from "../lib/manifests.js";
import { MANAGER } from "../lib/patch.js";
import { pathOf, questionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { editable } from "../lib/yamlblocks.js";

/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").View} View */
/** @typedef {import("../lib/manifests.js").Manifest} Manifest */
/** @typedef {import("../lib/files.js").TextFile} TextFile */

/**
 * @typedef {object} Entry One object of the plan.
 * @property {Manifest} manifest
 * @property {string} state A name in texts.apply.states.
 * @property {string} before The object as YAML without fields of the server; "" if it does not exist.
 * @property {string} after
 * @property {string} version Its resourceVersion.
 * @property {any} error
 * @property {string} warning
 * @property {HTMLDetailsElement} element
 */

const t = texts.apply;
const YAML = "application/yaml";
const CONCURRENCY = 4;
// Waiting for new kinds to be served, in milliseconds.
const SERVED_INTERVAL = 500;
const SERVED_TIMEOUT = 30_000;
/** The name in the session's storage under which other views leave a text for this one. */
const HANDOVER = "kubetwist-apply";

/** @param {string} text */
const versionOf = (text) => /^ {2}resourceVersion: "?(\w+)"?$/m.exec(text)?.[1] ?? "";

class ApplyView {
  /** @param {string} namespace For objects without one. */
  constructor(namespace) {
    loadStyle("editor");
    loadStyle("apply");
    this.namespace = namespace || "default";
    /** @type {TextFile[]} */
    this.files = [];
    /** @type {Entry[]} */
    this.entries = [];
    this.stop = new AbortController();
    this.applied = false;
    const handed = sessionStorage.getItem(HANDOVER) ?? "";
    sessionStorage.removeItem(HANDOVER);
    this.area = editor(handed, () => this.changed(), () => this.plan());
    this.draft = new DraftBar("#/apply", this.area, { original: "" });
    this.list = h("ul", { class: "files" });
    this.note = h("div", { role: "status" });
    this.summary = h("div", { role: "status", id: "plan-summary" });
    this.results = h("div", { id: "plan-entries" });
    const choose = (/** @type {HTMLInputElement} */ input) => async () => {
      if (input.files) await this.read(chosenFiles(input.files));
      input.value = "";
    };
    const filesInput = h("input", { type: "file", multiple: true, accept: ".yaml,.yml,.json", hidden: true, id: "files-input" });
    const folderInput = h("input", { type: "file", webkitdirectory: true, hidden: true, id: "folder-input" });
    filesInput.addEventListener("change", choose(filesInput));
    folderInput.addEventListener("change", choose(folderInput));
    this.force = h("input", { type: "checkbox", id: "force-all", onchange: () => this.changed() });
    this.planButton = button(t.plan, () => this.plan(), { id: "plan" });
    this.applyButton = button(t.apply, () => this.apply(), { class: "main", id: "apply", disabled: true });
    const body = h("div", { class: "edit apply" }, h("p", { class: "quiet" }, t.intro), this.draft.element, this.area, this.area.messages,
      h("div", { class: "row" }, button(t.files, () => filesInput.click()), button(t.folder, () => folderInput.click()), filesInput, folderInput), this.list, this.note,
      h("div", { class: "row" }, this.planButton, this.applyButton, h("label", { for: "force-all" }, this.force, t.force)),
      this.summary, this.results);
    for (const name of ["dragover", "drop"]) body.addEventListener(name, (event) => this.drag(/** @type {DragEvent} */ (event)), { capture: true });
    this.element = frame(h("h1", null, t.title), body);
  }

  /** Whether leaving would lose something. */
  unsaved() { return !this.applied && (this.area.value.trim() !== "" || this.files.length > 0); }

  close() {
    this.stop.abort();
    this.draft.close(this.applied);
  }

  /** Forget the plan: the texts are no longer those of the plan. */
  changed() {
    this.applied = false;
    this.draft.changed();
    if (!this.entries.length) return;
    this.entries = [];
    this.applyButton.disabled = true;
    replace(this.summary, h("span", { class: "quiet" }, t.changeFirst));
    replace(this.results);
  }

  /** Take over dropped files; the editor would insert them into its text. @param {DragEvent} event */
  async drag(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type === "drop") await this.read(droppedFiles(event.dataTransfer));
  }

  /** Add files, or show why they cannot be read. @param {ReturnType<typeof chosenFiles>} files */
  async read(files) {
    try { this.add(await files); } catch (error) { replace(this.note, problem(error)); }
  }

  /** @param {{ files: TextFile[], skipped: number, tooMuch: boolean }} found */
  add({ files, skipped, tooMuch }) {
    const names = new Set(files.map(({ name }) => name));
    this.files = [...this.files.filter(({ name }) => !names.has(name)), ...files];
    replace(this.note, tooMuch ? h("div", { class: "problem", role: "alert" }, t.tooMuch) : skipped ? h("span", { class: "quiet" }, t.skipped(skipped)) : null);
    this.drawFiles();
    this.changed();
  }

  drawFiles() {
    const remove = (/** @type {TextFile} */ file) => {
      this.files = this.files.filter((one) => one !== file);
      this.drawFiles();
      this.changed();
    };
    replace(this.list, this.files.map((file) => h("li", { class: "chip" }, file.name, button("×", () => remove(file), { class: "link", "aria-label": t.remove(file.name) }))));
  }

  /** Return all objects, in the order in which they are applied. */
  manifests() {
    const found = [...manifestsOf(t.pasted, this.area.value), ...this.files.flatMap(({ name, text }) => manifestsOf(name, text))];
    const rank = (/** @type {Manifest} */ { object }) => (object ? rankOf(object) : -1);
    return found.sort((a, b) => rank(a) - rank(b));
  }

  /** Return the resource of an object in the version of the object; null if it is not served. @param {any} object @returns {Resource | null} */
  resourceOf({ apiVersion, kind }) {
    const found = api.resourceOfKind(apiVersion, kind);
    return found ? { ...found, version: apiVersion.split("/").at(-1) ?? "" } : null;
  }

  /** @param {any} object @param {Resource} resource */
  targetOf(object, resource) {
    const namespace = resource.namespaced ? String(object.metadata.namespace || this.namespace) : "";
    return { namespace, name: String(object.metadata.name), path: pathOf(resource, namespace, object.metadata.name) };
  }

  async plan() {
    if (this.planButton.disabled) return;
    const manifests = this.manifests();
    if (!manifests.length) { replace(this.summary, h("span", { class: "quiet" }, t.nothing)); return; }
    this.planButton.disabled = this.applyButton.disabled = true;
    const entries = (this.entries = manifests.map((manifest) => this.newEntry(manifest)));
    replace(this.results, entries.map((entry) => entry.element));
    let done = 0;
    try {
      await api.discover();
      const objects = manifests.flatMap(({ object }) => object ?? []);
      const defined = { namespaces: namespacesOf(objects), kinds: definedKinds(objects) };
      this.markTwice(entries);
      await forAll(entries, async (entry) => {
        if (entry.state === "waiting") await this.planOne(entry, defined);
        this.draw(entry);
        replace(this.summary, `${t.planning} ${t.progress(++done, entries.length)}`);
      }, CONCURRENCY, this.stop.signal);
    } catch (error) { if (entries === this.entries) replace(this.summary, problem(error)); return; } finally { this.planButton.disabled = false; }
    // The texts may have changed meanwhile.
    if (entries !== this.entries) return;
    replace(this.summary, this.counts());
    this.applyButton.disabled = !entries.some(({ state }) => state !== "error");
  }

  /** @param {Manifest} manifest @returns {Entry} */
  newEntry(manifest) {
    const element = h("details", { class: "entry" });
    /** @type {Entry} */
    const entry = { manifest, state: manifest.error ? "error" : "waiting", before: "", after: "", version: "", error: manifest.error ? new Error(manifest.error) : null, warning: "", element };
    element.addEventListener("toggle", () => this.drawDetails(entry));
    this.draw(entry);
    return entry;
  }

  /** An object that occurs twice would be overwritten by its second text. @param {Entry[]} entries */
  markTwice(entries) {
    const seen = new Set();
    for (const entry of entries) {
      const { object } = entry.manifest, resource = object && this.resourceOf(object);
      const key = object && `${groupOf(object.apiVersion)} ${object.kind} ${resource ? this.targetOf(object, resource).path : `${object.metadata.namespace} ${object.metadata.name}`}`;
      if (object && seen.has(key)) { entry.state = "error"; entry.error = new Error(t.twice); }
      seen.add(key);
    }
  }

  /** @param {any} object @param {Resource} resource @param {boolean} dry */
  async write(object, resource, dry) {
    const { namespace, name, path } = this.targetOf(object, resource);
    const query = new URLSearchParams({ fieldManager: MANAGER, fieldValidation: "Strict" });
    if (dry) query.set("dryRun", "All");
    if (this.force.checked) query.set("force", "true");
    const body = JSON.stringify(namespace ? { ...object, metadata: { ...object.metadata, namespace } } : object);
    return api.ask(`${path}?${query}`, { method: "PATCH", accept: YAML, type: "application/apply-patch+yaml", body, signal: this.stop.signal, question: questionOf("patch", resource, namespace, name) });
  }

  /** @param {Entry} entry @param {{ namespaces: Set<string>, kinds: Set<string> }} defined By other objects of the plan. */
  async planOne(entry, defined) {
    const { object } = entry.manifest, resource = this.resourceOf(object);
    if (!resource) {
      if (defined.kinds.has(`${groupOf(object.apiVersion)} ${object.kind}`)) entry.state = "after";
      else { entry.state = "error"; entry.error = new Error(t.notServed(object.kind, object.apiVersion)); }
      return;
    }
    const { namespace, name, path } = this.targetOf(object, resource);
    try {
      const before = await api.text(path, { accept: YAML, signal: this.stop.signal, question: questionOf("get", resource, namespace, name) }).catch((error) => {
        if (error.code === 404) return "";
        throw error;
      });
      const response = await this.write(object, resource, true);
      entry.version = versionOf(before);
      entry.before = before && editable(before);
      entry.after = editable(await response.text());
      entry.warning = (response.headers.get("warning") ?? "").replace(/^299 \S+ /, "");
      entry.state = !before ? "create" : entry.before === entry.after ? "unchanged" : "change";
    } catch (error) {
      if (error.code === 404 && namespace && defined.namespaces.has(namespace)) { entry.state = "after"; return; }
      entry.state = "error";
      entry.error = error;
    }
  }

  counts() {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const { state } of this.entries) counts.set(state, (counts.get(state) ?? 0) + 1);
    return [...counts].map(([state, count]) => `${count} ${t.states[state]}`).join(", ");
  }

  /** @param {Entry} entry */
  draw(entry) {
    const { element, manifest: { source, line, object }, state, error } = entry;
    const { namespace = "", name = "" } = object?.metadata ?? {};
    const title = object ? `${object.kind} ${namespace ? `${namespace}/` : ""}${name}` : t.place(source, line);
    const look = state === "error" || state === "failed" ? "bad" : ["create", "change", "created", "changed"].includes(state) ? "good" : "quiet";
    replace(element, h("summary", null, h("span", { class: `state ${look}` }, t.states[state]), " ", h("span", null, title),
      h("span", { class: "quiet" }, object ? t.place(source, line) : "")));
    element.dataset.state = state;
    if (error) element.open = true;
    this.drawDetails(entry);
  }

  /** Show the error or the difference of an entry, and a link to its object, when it is open. @param {Entry} entry */
  drawDetails({ element, manifest: { object }, error, before, after, warning, state }) {
    const summary = element.firstElementChild;
    if (!element.open || !summary) return;
    const resource = object && ["change", "unchanged", "created", "changed"].includes(state) ? this.resourceOf(object) : null;
    const target = resource && this.targetOf(object, resource);
    replace(element, summary, resource && target ? h("p", null, h("a", { href: objectAddress(resource, target.namespace, target.name) }, t.show(object.kind, target.name))) : null,
      error ? problem(error) : null, warning ? h("p", { class: "waiting" }, warning) : null,
      error ? null : (after && diffView(before, after)) || h("p", { class: "quiet" }, state === "after" ? t.states.after : texts.noChanges));
  }

  async apply() {
    const { entries } = this, left = entries.filter(({ state }) => state !== "error");
    this.planButton.disabled = this.applyButton.disabled = true;
    let done = 0;
    for (const rank of [...new Set(left.map(({ manifest }) => rankOf(manifest.object)))].sort((a, b) => a - b)) {
      const some = left.filter(({ manifest }) => rankOf(manifest.object) === rank);
      await this.untilServed(some);
      await forAll(some, async (entry) => {
        await this.applyOne(entry);
        this.draw(entry);
        replace(this.summary, `${t.applying} ${t.progress(++done, left.length)}`);
      }, CONCURRENCY, this.stop.signal);
    }
    if (this.stop.signal.aborted || entries !== this.entries) return;
    const failed = entries.filter(({ state }) => state === "failed" || state === "error").length;
    this.planButton.disabled = false;
    this.applied = !failed;
    if (this.applied) this.draft.drafts.remove(this.draft.address);
    replace(this.summary, h("strong", null, t.done(left.filter(({ state }) => state !== "failed").length, failed)), failed ? ` ${t.keptOnError}` : null);
  }

  /** Wait until the kinds that were defined just now are served. @param {Entry[]} entries */
  async untilServed(entries) {
    const missing = () => entries.some(({ manifest }) => !this.resourceOf(manifest.object));
    for (const end = Date.now() + SERVED_TIMEOUT; missing() && Date.now() < end && !this.stop.signal.aborted;) {
      await api.discover().catch(() => {});
      if (missing()) await api.pause(SERVED_INTERVAL, this.stop.signal);
    }
  }

  /** @param {Entry} entry */
  async applyOne(entry) {
    const { object } = entry.manifest, resource = this.resourceOf(object);
    try {
      if (!resource) throw new Error(t.notServed(object.kind, object.apiVersion));
      const response = await this.write(object, resource, false), text = await response.text();
      entry.after = editable(text);
      entry.state = response.status === 201 ? "created" : versionOf(text) === entry.version ? "unchanged" : "changed";
    } catch (error) {
      entry.state = "failed";
      entry.error = error;
    }
  }
}

/**
 * Return the view that applies objects.
 *
 * @param {string} namespace The chosen namespace; "" for all.
 * @returns {View}
 */
export function applyView(namespace) {
  const shown = new ApplyView(namespace);
  return { element: shown.element, title: t.title, close: () => shown.close(), unsaved: () => shown.unsaved() };
}
