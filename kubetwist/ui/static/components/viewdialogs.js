// Dialogs that save, rename and delete a view.

import { button, h, openDialog, replace } from "../core/dom.js";
import { keepViews, savedViews } from "../core/savedviews.js";
import { MAX_NAME, withView, withoutView } from "../lib/savedviews.js";
import { texts } from "../lib/texts.js";

const t = texts.finding;

/**
 * Ask for the name of a view.
 *
 * @param {string} title
 * @param {string} name
 * @param {(name: string) => string} keep Stores the view; returns why it could not be stored, or "".
 * @param {HTMLElement | null} [more] A further button.
 */
function askForName(title, name, keep, more = null) {
  const field = h("input", { id: "view-name", required: true, maxlength: MAX_NAME, value: name, spellcheck: false, autocomplete: "off", autofocus: true });
  const messages = h("div", { "aria-live": "polite" });
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const refusal = keep(field.value.trim());
    if (refusal) replace(messages, h("div", { class: "problem", role: "alert" }, refusal));
    else dialog.close();
  };
  const dialog = openDialog(title, () => h("form", { onsubmit: submit }, h("h1", null, title),
    h("label", { class: "row", for: "view-name" }, t.viewName, field), messages,
    h("div", { class: "row" }, more, button(texts.cancel, () => dialog.close()), h("button", { class: "button main", type: "submit", id: "keep-view" }, texts.save))));
  field.select();
  return dialog;
}

/** @param {import("../lib/savedviews.js").SavedView[] | null} views */
const stored = (views) => (views === null ? t.tooManyViews : keepViews(views) ? "" : t.noStorage);

/**
 * Save a view.
 *
 * @param {string} name A proposal.
 * @param {string} address
 */
export const saveView = (name, address) => askForName(t.saveView, name, (given) => stored(withView(savedViews(), { name: given, address })));

/**
 * Rename or delete a view.
 *
 * @param {string} name
 */
export function changeView(name) {
  const remove = button(texts.delete, () => { keepViews(withoutView(savedViews(), name)); dialog.close(); }, { class: "danger", id: "delete-view" });
  const dialog = askForName(t.savedView, name, (given) => {
    const view = savedViews().find((one) => one.name === name);
    return view ? stored(withView(withoutView(savedViews(), name), { name: given, address: view.address })) : "";
  }, remove);
}
