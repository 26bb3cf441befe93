// The server's YAML with foldable blocks.

import { h, replace } from "../core/dom.js";
import { texts } from "../lib/texts.js";
import { blockOf, folds, placesOf } from "../lib/yamlblocks.js";

const MAX_LINES = 20000;
// Buttons of later lines are reached by the mouse only, so that Tab leaves the view.
const MAX_TAB_STOPS = 400;

/** A view of a text. */
export class YAMLView {
  /**
   * @param {string} text
   * @param {YAMLView | null} before Blocks are folded as in this view; by default the managed fields are.
   */
  constructor(text, before) {
    const all = text.replace(/\n$/, "").split("\n");
    const lines = all.slice(0, MAX_LINES);
    this.ends = folds(lines);
    this.places = placesOf(lines, this.ends);
    /** @type {Set<number>} */
    this.closed = new Set();
    if (before) {
      const folded = before.folded;
      this.places.forEach((place, index) => { if (place && folded.has(place)) this.closed.add(index); });
    } else {
      const managed = blockOf(lines, "metadata", "managedFields");
      if (managed && this.ends[managed[0]]) this.closed.add(managed[0]);
    }
    this.lines = lines.map((line, index) => this.line(line, index));
    this.element = h("div", { class: "yaml", tabindex: "0", role: "region", "aria-label": "YAML" },
      this.lines.map((one) => one.element),
      all.length > MAX_LINES ? h("div", null, h("span", { class: "gutter" }), texts.moreLines(all.length - MAX_LINES)) : null);
    this.apply();
  }

  /** @param {string} line @param {number} index */
  line(line, index) {
    const tabindex = index > MAX_TAB_STOPS ? "-1" : null;
    const fold = this.ends[index] ? h("button", { class: "fold", type: "button", tabindex, onclick: () => this.toggle(index) }, "▾") : null;
    const gutter = h("span", { class: "gutter" }, String(index + 1), h("span", { class: "fold" }, fold));
    const match = /^(\s*(?:- )*)([^\s:"'][^:"']*|"[^"]*")(:)(?=\s|$)(.*)$/.exec(line);
    const content = h("span", null, match ? [match[1], h("span", { class: "key" }, match[2]), match[3], match[4]] : line);
    const dots = h("span", { class: "dots" });
    content.append(dots);
    return { element: h("div", null, gutter, content), fold, dots, name: match ? match[2] : "lines" };
  }

  /** The identifiers of the folded blocks. */
  get folded() { return new Set([...this.closed].map((one) => this.places[one])); }

  /** @param {number} index */
  toggle(index) {
    if (!this.closed.delete(index)) this.closed.add(index);
    this.apply();
  }

  apply() {
    let until = 0;
    this.lines.forEach((one, index) => {
      one.element.hidden = index < until;
      if (!one.fold) return;
      const shut = this.closed.has(index);
      one.fold.textContent = shut ? "▸" : "▾";
      one.fold.setAttribute("aria-expanded", String(!shut));
      one.fold.setAttribute("aria-label", shut ? texts.unfold(one.name) : texts.fold(one.name));
      one.dots.textContent = shut ? texts.foldedLines(this.ends[index] - index - 1) : "";
      if (shut && index >= until) until = this.ends[index];
    });
  }

  /** Move the focus to the button of a block. @param {string} place */
  focusOn(place) { this.lines[this.places.indexOf(place)]?.fold?.focus({ preventScroll: true }); }

  /** The block whose button has the focus; "" without one. */
  get focused() { return this.places[this.lines.findIndex((one) => one.fold && one.fold === document.activeElement)] || ""; }

  /** Take the place of an earlier view in a body: scrolled and focused alike. @param {HTMLElement} body @param {YAMLView | null} before */
  show(body, before) {
    const top = before?.element.scrollTop ?? 0, focused = before?.focused ?? "", itself = before?.element === document.activeElement;
    replace(body, this.element);
    this.element.scrollTop = top;
    if (itself) this.element.focus({ preventScroll: true });
    else if (focused) this.focusOn(focused);
  }
}
