// The fields of an action, as elements.

import { button, h, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @typedef {import("../lib/actionmodel.js").Field} Field */
/** @typedef {import("../lib/actionmodel.js").Values} Values */
/** @typedef {{ element: HTMLElement, value: () => any, control: HTMLElement }} Part */

const t = texts.operations;

/** @param {Field} field @param {any} initial @param {Record<string, any>} names The attributes that name the control. @param {() => void} changed */
function control({ type, required, pattern, min, options = [] }, initial, names, changed) {
  if (type === "select") return h("select", { ...names, onchange: changed }, options.map(([value, text]) => h("option", { value, selected: value === initial }, text)));
  if (type === "area") return h("textarea", { ...names, rows: String(Math.min(6, String(initial ?? "").split("\n").length)), value: initial ?? "", required, spellcheck: false, oninput: changed });
  if (type === "checkbox") return h("input", { ...names, type, checked: Boolean(initial), onchange: changed });
  return h("input", { ...names, type, value: initial ?? "", required, pattern, min, step: type === "number" ? 1 : null, spellcheck: false, autocomplete: "off", oninput: changed });
}

/** @param {HTMLElement} element @returns {any} */
const valueOf = (element) => (element instanceof HTMLInputElement && element.type === "checkbox" ? element.checked : /** @type {HTMLInputElement} */ (element).value);

/** Rows of fields, which can be added and removed. @param {Field} field @param {() => void} changed @returns {Part} */
function rowsPart({ id, label, columns = [], initial = [] }, changed) {
  const body = h("div", { class: "edit-rows" });
  /** @type {{ element: HTMLElement, controls: HTMLElement[] }[]} */
  let rows = [];
  const add = (/** @type {Record<string, any>} */ record) => {
    const controls = columns.map((column) => control(column, record[column.id] ?? column.initial, { "aria-label": column.label, placeholder: column.label, "data-column": column.id }, changed));
    const remove = () => { rows = rows.filter((one) => one !== row); row.element.remove(); more.focus(); changed(); };
    const row = { controls, element: h("div", { class: "edit-row" }, controls, button("×", remove, { "aria-label": t.removeRow, title: t.removeRow })) };
    rows.push(row);
    body.append(row.element);
    return row;
  };
  const more = button(t.addRow, () => { add({}).controls[0].focus(); changed(); }, { "data-add": id });
  initial.forEach(add);
  return {
    control: more, element: h("fieldset", { class: "rows", id: `field-${id}` }, h("legend", null, label), body, more),
    value: () => rows.map(({ controls }) => Object.fromEntries(columns.map((column, index) => [column.id, valueOf(controls[index])]))),
  };
}

/** @param {Field} field @param {() => void} changed @returns {Part} */
function part(field, changed) {
  if (field.type === "rows") return rowsPart(field, changed);
  const id = `field-${field.id}`, input = control(field, field.initial, { id }, changed);
  return { control: input, element: h("label", { class: "row", for: id }, field.type === "checkbox" ? [input, field.label] : [field.label, input]), value: () => valueOf(input) };
}

export class ActionForm {
  /** @param {() => void} changed Called after each change of a value. */
  constructor(changed) {
    this.changed = changed;
    this.element = h("div", { class: "fields" });
    /** @type {Map<string, Part>} */
    this.parts = new Map();
  }

  /** Replace the fields. @param {Field[]} fields */
  show(fields) {
    this.parts = new Map(fields.map((field) => [field.id, part(field, this.changed)]));
    replace(this.element, [...this.parts.values()].map(({ element }) => element));
  }

  focus() {
    const [first] = this.parts.values();
    if (first?.control instanceof HTMLInputElement) first.control.select();
  }

  /** @returns {Values} */
  get values() { return Object.fromEntries([...this.parts].map(([id, { value }]) => [id, value()])); }
}
