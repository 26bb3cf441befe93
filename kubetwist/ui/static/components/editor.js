// A text area with line numbers.

import { h } from "../core/dom.js";
import { texts } from "../lib/texts.js";

/**
 * Create an editor.
 *
 * @param {string} text
 * @param {() => void} changed Called after each change by the user.
 */
export function editor(text, changed) {
  const numbers = h("pre", { "aria-hidden": "true" });
  const area = h("textarea", { "aria-label": "YAML", "aria-description": texts.editorKeys, spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", value: text });
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
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); /** @type {HTMLButtonElement | null} */ (document.querySelector("#review"))?.click(); }
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    area.setRangeText("  ", area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  });
  count();
  return { element: h("div", { class: "editor" }, numbers, area), area };
}
