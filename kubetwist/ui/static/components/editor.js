// An editor of YAML: CodeMirror in a shadow root, where its styles are constructed style sheets. The content security
// policy forbids the <style> elements that it would create in the document.

import { resources } from "../core/api.js";
import { button, h, replace } from "../core/dom.js";
import { schemasOf } from "../core/openapi.js";
import { MAX_CHECKED, checkDocument, kindsOf } from "../lib/diagnostics.js";
import { apiVersionOf } from "../lib/resources.js";
import { texts } from "../lib/texts.js";
import { documentsOf, nextIndent, pathAt, placeAt, textOf, treeOf } from "../lib/yamltree.js";
import * as cm from "../vendor/codemirror/codemirror.mjs";
import { theme } from "./editortheme.js";

/** @typedef {import("../lib/diagnostics.js").Diagnostic} Diagnostic */
/** @typedef {import("../lib/openapi.js").Field} Field */
/** @typedef {import("../lib/openapi.js").Completion} Completion */

const t = texts.editor;
// Time in milliseconds after the last change, before a text is checked.
const DELAY = 300;
// In longer texts, in characters, completion starts only on request: each one parses the text.
const MAX_COMPLETED = 200_000;
// Errors that are listed below the editor.
const MAX_LISTED = 3;

/** Call a function when the browser has nothing else to do. @param {() => void} call */
const whenIdle = (call) => { if ("requestIdleCallback" in window) requestIdleCallback(call, { timeout: 1000 }); else setTimeout(call); };

/** Return the document around an offset. @param {string} text @param {number} offset */
const documentAt = (text, offset) => documentsOf(text).findLast(({ from, to }) => from <= offset && offset <= to) ?? { from: 0, to: documentsOf(text)[0]?.from ?? text.length };

/** Return the description of a field; its texts are those of the server. @param {string} name @param {Field} field @param {boolean} required */
const fieldView = (name, field, required) => h("div", { class: "field" },
  h("div", null, h("code", null, name), " ", h("span", { class: "quiet" }, field.label, required ? `, ${t.required}` : "")),
  field.description ? h("p", null, field.description) : null,
  field.values.length ? h("p", { class: "quiet" }, t.values, field.values.join(", ")) : null,
  ["string", "number", "boolean"].includes(typeof field.raw.default) && field.raw.default !== "" ? h("p", { class: "quiet" }, t.defaultValue, String(field.raw.default)) : null);

/** Return the text after a completed key. @param {Completion["shape"]} shape @param {number} column Of the key. */
function afterKey(shape, column) {
  const indent = " ".repeat(column);
  return shape === "map" ? `:\n${indent}  ` : shape === "seq" ? `:\n${indent}- ` : ": ";
}

/** @param {cm.EditorView} view @param {string} name @param {Completion["shape"]} shape @param {boolean} colon @param {number} from @param {number} to */
function insertKey(view, name, shape, colon, from, to) {
  const insert = /^[\w$][\w.\-/$]*$/.test(name) ? name : JSON.stringify(name);
  const line = view.state.doc.lineAt(from);
  // In flow style, a value follows in the same line.
  const block = /^\s*(?:- +)*$/.test(line.text.slice(0, from - line.from));
  const added = colon ? "" : block ? afterKey(shape, from - line.from) : ": ";
  view.dispatch({ changes: { from, to, insert: insert + added }, selection: { anchor: from + insert.length + added.length }, userEvent: "input.complete", scrollIntoView: true });
  if (added) setTimeout(() => cm.startCompletion(view));
}

/** @param {Field} field @returns {string[]} */
const valuesOf = (field) => (field.values.length ? field.values.map(String) : field.type === "boolean" ? ["true", "false"] : []);

/** Complete the key or value at the cursor. @param {cm.CompletionContext} context @returns {Promise<cm.CompletionResult | null>} */
async function complete(context) {
  if (context.state.doc.length > (context.explicit ? MAX_CHECKED : MAX_COMPLETED)) return null;
  const text = context.state.doc.toString(), part = documentAt(text, context.pos);
  const place = placeAt(text.slice(part.from, part.to), context.pos - part.from);
  if (!place || (!context.explicit && place.from === place.to)) return null;
  const { path, wanted } = place, from = part.from + place.from, to = part.from + place.to;
  const word = /^[\w.\-/$]*$/;
  const apiVersion = textOf(place.tree, "apiVersion"), kind = textOf(place.tree, "kind");
  if (path.length === 1 && wanted !== "key" && (path[0] === "kind" || path[0] === "apiVersion")) {
    const byVersion = resources().filter((one) => apiVersionOf(one) === apiVersion), byKind = resources().filter((one) => one.kind === kind);
    const known = path[0] === "kind" ? byVersion : byKind, served = known.length ? known : resources();
    const names = new Set(served.map((one) => (path[0] === "kind" ? one.kind : apiVersionOf(one))));
    return { from, to, options: [...names].sort().map((label) => ({ label })), validFor: word };
  }
  const schemas = await schemasOf(apiVersion, kind);
  const root = schemas?.ofKind(apiVersion, kind);
  if (!schemas || !root || context.aborted) return null;
  const field = schemas.at(root, path);
  if (!field) return null;
  const asKeys = wanted === "key" || (wanted === "either" && (field.type === "object" || Object.keys(field.properties).length > 0));
  if (!asKeys) return { from, to, options: valuesOf(field).map((label) => ({ label: /^(?:true|false|null|~|[\d.+-].*|)$/.test(label) && field.type === "string" ? JSON.stringify(label) : label })), validFor: word };
  const options = schemas.completions(field, place.present).map((one, index) => ({
    label: one.name, detail: one.required ? `${one.label}, ${t.required}` : one.label, boost: one.required ? 1 : -Math.min(index, 90) / 100,
    info: () => fieldView(one.name, schemas.field(field.properties[one.name]), one.required),
    apply: (/** @type {cm.EditorView} */ view, /** @type {unknown} */ _, /** @type {number} */ start, /** @type {number} */ end) => insertKey(view, one.name, one.shape, place.colon, start, end),
  }));
  return { from, to, options, validFor: word };
}

/** Describe the field under the pointer. @param {cm.EditorView} view @param {number} offset @returns {Promise<cm.Tooltip | null>} */
async function describe(view, offset) {
  if (view.state.doc.length > MAX_CHECKED) return null;
  const text = view.state.doc.toString(), { from, to } = documentAt(text, offset);
  const tree = treeOf(text, from, to), found = pathAt(tree, offset);
  if (!found) return null;
  const apiVersion = textOf(tree, "apiVersion"), kind = textOf(tree, "kind");
  const schemas = await schemasOf(apiVersion, kind), root = schemas?.ofKind(apiVersion, kind);
  const field = schemas?.at(root ?? null, found.path);
  if (!field) return null;
  const name = found.path.findLast((part) => typeof part === "string") ?? "";
  const required = Boolean(schemas?.at(root ?? null, found.path.slice(0, -1))?.required.includes(String(found.path.at(-1))));
  return { pos: found.from, end: found.to, above: true, create: () => ({ dom: fieldView(String(name), field, required) }) };
}

/** The element of an editor. */
export class YAMLEditor extends HTMLElement {
  constructor() {
    super();
    /** Called after each change. */
    this.changed = () => {};
    /** Called for Control and Enter. */
    this.review = () => {};
    /** Lists errors, for the view. */
    this.messages = h("div", { class: "editor-messages", role: "status" });
    this.timer = 0;
    this.turn = 0;
    const root = this.attachShadow({ mode: "open", delegatesFocus: false });
    this.view = new cm.EditorView({ state: this.stateOf(""), parent: root, root });
    // The keys of the page, such as "/" and Escape, have other meanings here.
    this.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation(); });
  }

  /** @param {string} doc */
  stateOf(doc) {
    const keys = [
      { key: "Mod-Enter", run: () => { this.review(); return true; } },
      { key: "Enter", run: (/** @type {cm.EditorView} */ view) => this.breakLine(view) },
      { key: "Tab", run: (/** @type {cm.EditorView} */ view) => cm.acceptCompletion(view) || this.indent(view), shift: cm.indentLess },
    ];
    return cm.EditorState.create({ doc, extensions: [
      cm.keymap.of(keys), cm.lineNumbers(), cm.lintGutter(), cm.foldGutter(), cm.history(), cm.drawSelection(), cm.indentOnInput(), cm.bracketMatching(), cm.closeBrackets(), cm.highlightActiveLine(), cm.highlightActiveLineGutter(),
      cm.highlightSelectionMatches(), cm.search({ top: true }), cm.indentUnit.of("  "), cm.EditorState.tabSize.of(2), cm.yaml(), theme,
      cm.autocompletion({ override: [complete], icons: false }), cm.hoverTooltip(describe),
      cm.keymap.of([...cm.closeBracketsKeymap, ...cm.defaultKeymap, ...cm.searchKeymap, ...cm.historyKeymap, ...cm.foldKeymap, ...cm.completionKeymap, ...cm.lintKeymap]),
      cm.EditorView.contentAttributes.of({ "aria-label": t.label, tabindex: "0", "aria-description": t.keys, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
      cm.EditorView.updateListener.of((update) => { if (update.docChanged) { this.changed(); this.schedule(); } }),
    ] });
  }

  /** @param {cm.EditorView} view */
  indent(view) {
    if (!view.state.selection.main.empty) return cm.indentMore(view);
    view.dispatch(view.state.replaceSelection("  "), { scrollIntoView: true, userEvent: "input" });
    return true;
  }

  /** Begin a line with the indentation of what follows. @param {cm.EditorView} view */
  breakLine(view) {
    const { main } = view.state.selection, line = view.state.doc.lineAt(main.from);
    const indent = nextIndent(line.text.slice(0, main.from - line.from));
    if (indent === null) return false;
    view.dispatch(view.state.replaceSelection(`\n${" ".repeat(indent)}`), { scrollIntoView: true, userEvent: "input" });
    return true;
  }

  get value() { return this.view.state.doc.toString(); }

  /** Replace the text as a change of the user, which can be undone. */
  set value(text) {
    const old = this.value;
    // Only the middle that differs is replaced, so that the cursor and the scroll position remain.
    let start = 0, end = 0;
    while (start < old.length && start < text.length && old[start] === text[start]) start++;
    while (end < old.length - start && end < text.length - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    this.view.dispatch({ changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) }, userEvent: "input" });
  }

  /** Show a text, without history. @param {string} text */
  load(text) {
    const changed = this.changed;
    this.changed = () => {};
    /** @type {any} */ (this.view).setState(this.stateOf(text));
    this.changed = changed;
    this.schedule();
  }

  focus() { this.view.focus(); }

  disconnectedCallback() { clearTimeout(this.timer); this.turn++; }

  /** Check the text after a while. */
  schedule() {
    clearTimeout(this.timer);
    const mine = ++this.turn;
    this.timer = setTimeout(() => whenIdle(() => { if (mine === this.turn) this.check(mine); }), DELAY);
  }

  /** Check one document after another, with pauses for input between them. @param {number} mine */
  async check(mine) {
    const { doc } = this.view.state;
    if (doc.length > MAX_CHECKED) { this.show([], t.tooLarge); return; }
    const text = doc.toString();
    /** @type {Diagnostic[]} */
    const found = [];
    for (const one of kindsOf(text)) {
      const schemas = one.kind ? await schemasOf(one.apiVersion, one.kind) : null;
      await new Promise((done) => whenIdle(() => done(null)));
      if (mine !== this.turn) return;
      found.push(...checkDocument(text, one, schemas));
    }
    this.show(found, found.length || !text.trim() ? "" : t.noErrors);
  }

  /** Show what is wrong, until the next change. @param {Diagnostic[]} found @param {string} [note] */
  show(found, note = "") {
    const { doc } = this.view.state;
    const placed = found.map(({ from, to, message, brief }) => ({ from: Math.min(from, doc.length), to: Math.min(to, doc.length), message, brief: brief ?? message, severity: /** @type {const} */ ("error") }));
    placed.sort((a, b) => a.from - b.from);
    this.view.dispatch(cm.setDiagnostics(this.view.state, placed));
    const line = (/** @type {typeof placed[0]} */ { from, brief }) => h("div", null, button(t.atLine(doc.lineAt(from).number), () => this.goTo(from), { class: "link" }), " ", brief);
    replace(this.messages, note ? h("span", { class: "quiet" }, note) : null, placed.slice(0, MAX_LISTED).map(line), placed.length > MAX_LISTED ? h("span", { class: "quiet" }, t.moreErrors(placed.length - MAX_LISTED)) : null);
  }

  /** Show the server's errors instead of those of the local check. @param {Diagnostic[]} found */
  showAnswer(found) {
    clearTimeout(this.timer);
    this.turn++;
    this.show(found);
  }

  /** @param {number} offset */
  goTo(offset) {
    const { doc } = this.view.state;
    this.view.dispatch({ selection: { anchor: Math.min(offset, doc.length) }, scrollIntoView: true });
    this.view.focus();
  }
}

customElements.define("yaml-editor", YAMLEditor);

/**
 * Create an editor.
 *
 * @param {string} text
 * @param {() => void} changed Called after each change by the user.
 * @param {() => void} review Called for Control and Enter.
 */
export function editor(text, changed, review) {
  const made = new YAMLEditor();
  made.classList.add("editor");
  made.load(text);
  made.changed = changed;
  made.review = review;
  return made;
}
