// A list of completions below a field: arrows choose, Enter takes one, Escape closes it.

import { h, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/** @typedef {{ text: string, field: boolean, finished: boolean }} Completion */

const LIST = "completions";

/**
 * Add completions to a field; its parent element must be its only relative one.
 *
 * @param {HTMLInputElement} input
 * @param {() => Completion[]} find Returns the completions of the present text.
 * @param {(chosen: Completion) => void} choose
 */
export function addCompletion(input, find, choose) {
  const list = h("ul", { id: LIST, role: "listbox", class: "completions", "aria-label": texts.finding.completions, hidden: true });
  input.after(list);
  /** @type {Completion[]} */
  let found = [];
  let at = -1;
  const close = () => {
    found = [];
    draw();
  };
  const draw = () => {
    replace(list, found.map((one, index) => h("li", {
      role: "option", id: `${LIST}-${index}`, "aria-selected": String(index === at), onpointerdown: (/** @type {PointerEvent} */ event) => { event.preventDefault(); take(one); },
    }, one.text, h("small", null, one.field ? texts.finding.field : one.finished && !/[=!]/.test(one.text) ? texts.finding.labelExists : ""))));
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (at >= 0) {
      input.setAttribute("aria-activedescendant", `${LIST}-${at}`);
      list.children[at]?.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const search = () => {
    found = document.activeElement === input ? find() : [];
    at = -1;
    draw();
  };
  const take = (/** @type {Completion} */ one) => {
    choose(one);
    search();
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (!found.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at = (at + (event.key === "ArrowDown" ? 1 : found.length + (at < 0 ? 0 : -1))) % found.length;
      draw();
    } else if (event.key === "Enter" && at >= 0) take(found[at]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", LIST], ["aria-expanded", "false"]]) input.setAttribute(name, value);
  input.addEventListener("keydown", key, { capture: true });
  input.addEventListener("input", search);
  input.addEventListener("blur", close);
  search();
}
