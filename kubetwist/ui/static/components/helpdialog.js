// The dialog with all keys.

import { button, h, openDialog } from "../core/dom.js";
import { texts } from "../lib/texts.js";

const t = texts.finding;

/** Open the dialog. */
export function openHelp() {
  const keys = (/** @type {string} */ text) => text.split(" ").map((one) => [h("kbd", null, one), " "]);
  const dialog = openDialog(t.help, () => [
    h("h1", null, t.help),
    t.helpSections.map(({ title, keys: all }) => [h("h2", null, title), h("table", { class: "plain fit keytable" }, h("tbody", null, all.map(([combination, meaning]) =>
      h("tr", null, h("td", null, keys(combination)), h("td", null, meaning)))))]),
    h("div", { class: "row" }, button(t.close, () => dialog.close(), { autofocus: true })),
  ]);
  return dialog;
}
