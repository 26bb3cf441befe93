// The table of a resource.

import { Chips } from "../components/chips.js";
import { TableView } from "../components/table.js";
import * as api from "../core/api.js";
import { button, h, openDialog } from "../core/dom.js";
import { hasListState, listAddress, listStateOf, objectAddress, stateAddress } from "../lib/addresses.js";
import { apiVersionOf, pathOf } from "../lib/resources.js";
import { SeenLabels, columnOfField, completions, fieldsOf, requirementOf, selectableFields, termsOf, valuesOfField, wrongPart } from "../lib/selectors.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../components/chips.js").Chip} Chip */
/** @typedef {import("../lib/addresses.js").ListState} ListState */
/** @typedef {import("../lib/types.js").Resource} Resource */
/** @typedef {import("../lib/types.js").View} View */

const t = texts.finding;
// Time in milliseconds from a key in the filter to the address that has it: browsers limit how often it changes.
const ADDRESS_DELAY = 300;
// Values of a column that are proposed for a field.
const MAX_VALUES = 200;

/** What the tables showed when they were left, by resource. @type {Map<string, ListState & { selected: string }>} */
const left = new Map();

/** Forget the settings of all tables. */
export const forgetLooks = () => left.clear();

/**
 * Return the view of a table.
 *
 * @param {Resource} resource
 * @param {string} namespace "" for all.
 * @param {URLSearchParams} query The parameters of the address.
 * @param {boolean} returns Whether the user comes back from an object of the table, which then has the filter that it had.
 * @returns {View}
 */
export function listView(resource, namespace, query, returns) {
  return new ListPage(resource, resource.namespaced ? namespace : "", query, returns).view;
}

class ListPage {
  /** @param {Resource} resource @param {string} namespace @param {URLSearchParams} query @param {boolean} returns */
  constructor(resource, namespace, query, returns) {
    this.resource = resource;
    this.here = listAddress(resource);
    const before = left.get(this.here), given = listStateOf(query);
    /** @type {ListState} */
    this.state = hasListState(query) || !before ? given : returns ? { ...before, namespace: given.namespace } : { ...before, namespace: given.namespace, labels: [], fields: [], filter: "" };
    /** @type {string[]} */
    this.selectable = [];
    this.timer = 0;
    this.seen = new SeenLabels();
    this.table = new TableView(resource, namespace, (row) => objectAddress(resource, row.namespace, row.name), this.selection);
    this.chips = new Chips((chip) => this.removeChip(chip));
    this.filter = h("input", {
      type: "search", id: "filter", placeholder: t.filterHint, "aria-label": texts.filterRows, "aria-keyshortcuts": "/", spellcheck: false, autocomplete: "off", value: this.state.filter,
      oninput: () => this.filtered(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.filterKey(event),
    });
    this.filter.addEventListener("focus", () => this.complete(), { once: true });
    this.wide = h("input", { type: "checkbox", id: "wide", checked: this.state.wide, onchange: () => { this.state.wide = this.wide.checked; this.table.setWide(this.wide.checked); this.keepAddress(); } });
    this.creator = h("span");
    this.element = h("div", { class: "main fills" },
      h("div", { class: "bar" }, h("h1", null, resource.resource), h("span", { class: "kind" }, apiVersionOf(resource)), this.table.count, h("span", { class: "grow" }),
        h("span", { class: "combo" }, this.filter), h("label", { class: "quiet", for: "wide" }, this.wide, texts.wide),
        button(t.columns, () => this.askForColumns(), { id: "columns" }), button(t.saveView, () => this.saveView(), { id: "save-view" }), this.creator),
      this.chips.element, this.table.element);
    this.table.look = { filter: this.state.filter.toLowerCase(), wide: this.state.wide, sorted: null, selected: before?.selected ?? "" };
    this.table.sortName = this.state.sort;
    this.table.setColumns(this.state.columns);
    this.table.arranged = () => { this.state.sort = this.table.sorting; this.keepAddress(); };
    this.table.explains = (error) => error.code === 400 && this.chips.refuse(error.message);
    this.chips.show(this.allChips);
    this.table.narrowed = this.allChips.length > 0;
    this.keepAddress();
    this.offerToCreate();
  }

  /** @returns {View} */
  get view() {
    return {
      element: this.element, title: this.resource.resource, close: () => this.close(), filter: this.filter, focus: this.table.table,
      current: () => this.table.current ?? null,
    };
  }

  close() {
    clearTimeout(this.timer);
    left.set(this.here, { ...this.state, sort: this.table.sorting, selected: this.table.selected });
    this.table.close();
  }

  async offerToCreate() {
    const { group, resource, verbs } = this.resource;
    if (!verbs.includes("create")) return;
    const allowed = await api.mayI({ verb: "create", group, resource, namespace: this.table.namespace }).catch(() => false);
    if (allowed) this.creator.append(h("a", { class: "button", href: listAddress(this.resource, "new") }, texts.create));
  }

  // The address.

  /** Let the address have what is shown. */
  keepAddress() {
    clearTimeout(this.timer);
    history.replaceState(history.state, "", stateAddress(this.resource, this.state));
  }

  /** Add an entry to the history, for what is shown now. */
  addAddress() {
    clearTimeout(this.timer);
    history.pushState(history.state, "", stateAddress(this.resource, this.state));
  }

  // Filter and selectors.

  /** What the server selects by; requirements that are invalid are left out. */
  get selection() {
    const { labels, fields } = this.state;
    return {
      labelSelector: labels.filter((one) => !wrongPart(one)).join(","), fieldSelector: fields.join(","),
      seen: (/** @type {import("../lib/types.js").Meta} */ meta) => this.seen.add(meta.labels),
    };
  }

  /** @returns {Chip[]} */
  get allChips() { return [...this.state.labels.map((text) => ({ text, field: false })), ...this.state.fields.map((text) => ({ text, field: true }))]; }

  filtered() {
    this.state.filter = termsOf(this.filter.value).words;
    this.table.setFilter(this.state.filter);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keepAddress(), ADDRESS_DELAY);
  }

  /** @param {KeyboardEvent} event */
  filterKey(event) {
    const { selectors } = termsOf(this.filter.value);
    if (event.key === "Enter" && selectors.length) {
      event.preventDefault();
      this.addChips(selectors);
    } else if (event.key === "Backspace" && !this.filter.value && this.allChips.length) this.removeChip(/** @type {Chip} */ (this.allChips.at(-1)));
    else if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      this.table.enter(event.key === "Enter");
    }
  }

  /** The fields by which the server can select. */
  get fields() { return fieldsOf(this.resource, this.selectable); }

  /** Make chips of requirements, and leave the plain words in the filter. @param {string[]} selectors */
  addChips(selectors) {
    for (const text of selectors) {
      const key = requirementOf(text)?.key ?? text;
      const list = this.fields.includes(key) || /^(metadata|spec|status)\./.test(key) ? this.state.fields : this.state.labels;
      if (!list.includes(text)) list.push(text);
    }
    this.filter.value = this.state.filter = termsOf(this.filter.value).words;
    this.select();
    this.filter.dispatchEvent(new Event("input"));
  }

  /** @param {Chip} chip */
  removeChip({ text, field }) {
    if (field) this.state.fields = this.state.fields.filter((one) => one !== text);
    else this.state.labels = this.state.labels.filter((one) => one !== text);
    this.filter.focus();
    this.select();
  }

  /** Select by the present chips. */
  select() {
    this.addAddress();
    this.chips.show(this.allChips);
    this.table.narrowed = this.allChips.length > 0;
    this.table.select(this.selection);
    this.table.setFilter(this.state.filter);
  }

  /** Add completions to the filter. */
  async complete() {
    const { addCompletion } = await import("../components/completion.js");
    const find = () => completions(termsOf(this.filter.value).last, { labels: this.seen.values, fields: this.fields, fieldValues: (field) => this.fieldValues(field) });
    addCompletion(this.filter, find, ({ text, finished }) => {
      const { last } = termsOf(this.filter.value), rest = this.filter.value.slice(0, this.filter.value.length - last.length);
      this.filter.value = finished ? rest : rest + text;
      if (finished) this.addChips([...termsOf(rest).selectors, text]);
      else this.filtered();
    });
    this.selectable = await this.readSelectable().catch(() => []);
  }

  /** @param {string} field */
  fieldValues(field) {
    const found = new Set(valuesOfField(this.resource.resource, field)), { columns, rows } = this.table.rows;
    const index = columns.findIndex((column) => column.name === columnOfField(field));
    if (field !== "metadata.namespace" && index < 0) return found;
    for (const row of rows.values()) {
      const value = index < 0 ? row.namespace : row.cells[index];
      if (typeof value === "string" && !/[\s<]/.test(value)) found.add(value);
      if (found.size >= MAX_VALUES) break;
    }
    return found;
  }

  /** Return the fields that the definition of a custom resource declares. */
  async readSelectable() {
    const { group, resource, version } = this.resource, definitions = api.resourceOf("apiextensions.k8s.io", "customresourcedefinitions");
    const name = `${resource}.${group}`;
    // Groups with a dot that are not of Kubernetes: built-in kinds have no definition.
    if (!definitions || !group.includes(".") || group.endsWith(".k8s.io") || !await api.mayI({ verb: "get", group: definitions.group, resource: definitions.resource, name })) return [];
    return selectableFields(await api.json(pathOf(definitions, "", name)), version);
  }

  // Columns and views.

  askForColumns() {
    const all = this.table.rows.columns.map(({ name }) => name);
    const shown = new Set(this.state.columns.length ? this.state.columns : this.table.columns.map(({ name }) => name));
    const choose = (/** @type {string[]} */ names) => { this.state.columns = names; this.table.setColumns(names); this.keepAddress(); };
    const dialog = openDialog(t.columns, () => [h("h1", null, t.columns),
      h("div", { class: "choices" }, all.map((name, index) => h("label", { for: `column-${index}` }, h("input", {
        type: "checkbox", id: `column-${index}`, checked: shown.has(name), onchange: (/** @type {any} */ event) => {
          if (event.target.checked) shown.add(name); else shown.delete(name);
          choose(all.filter((one) => shown.has(one)));
        },
      }), name))),
      h("div", { class: "row" }, button(t.defaultColumns, () => { choose([]); dialog.close(); }, { id: "default-columns" }), button(t.close, () => dialog.close(), { class: "main" }))]);
  }

  async saveView() {
    const { saveView } = await import("../components/viewdialogs.js");
    const name = [this.resource.resource, ...this.state.labels, ...this.state.fields, this.state.filter, this.table.namespace].filter(Boolean).join(" ");
    saveView(name.slice(0, 60), stateAddress(this.resource, { ...this.state, namespace: this.resource.namespaced ? this.table.namespace : null }));
  }
}
