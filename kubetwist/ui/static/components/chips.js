// The chips of a selector: one for each requirement, with what is wrong with it.

import { h, replace } from "../core/dom.js";
import { requirementOf, wrongPart } from "../lib/selectors.js";
import { texts } from "../lib/texts.js";

const t = texts.finding;

/** @typedef {{ text: string, field: boolean }} Chip */

/** The chips, in a bar that is hidden without any. */
export class Chips {
  /** @param {(chip: Chip) => void} removed Called when the user removes one. */
  constructor(removed) {
    this.removed = removed;
    /** @type {Chip[]} */
    this.all = [];
    /** The server's refusal of the selectors. */
    this.refusal = "";
    this.element = h("div", { class: "chipbar", role: "group", "aria-label": t.chips, hidden: true });
  }

  /** @param {Chip[]} chips */
  show(chips) {
    this.all = chips;
    this.refusal = "";
    this.draw();
  }

  /** Show that the server refuses the selectors. @param {string} message @returns {boolean} Whether there is a selector. */
  refuse(message) {
    if (!this.all.length) return false;
    if (message !== this.refusal) {
      this.refusal = message;
      this.draw();
    }
    return true;
  }

  /** Return what is wrong with a chip; "" if nothing is. @param {Chip} chip */
  wrong({ text, field }) {
    const part = field ? "" : wrongPart(text);
    if (part) return t.invalidPart(part);
    const key = requirementOf(text)?.key ?? text;
    // The server names the field or the value; if it names none of them, any may be the cause.
    const named = this.all.some((one) => this.refusal.includes(requirementOf(one.text)?.key ?? one.text));
    return this.refusal && (!named || this.refusal.includes(key)) ? this.refusal : "";
  }

  draw() {
    const messages = new Set(this.all.map((one) => this.wrong(one)).filter(Boolean));
    replace(this.element, this.all.map((chip) => {
      const wrong = this.wrong(chip);
      return h("span", { class: `chip removable ${wrong ? "bad" : ""} ${chip.field ? "field" : ""}`, title: wrong || null }, chip.text,
        h("button", { type: "button", "aria-label": t.removeChip(chip.text), onclick: () => this.removed(chip) }, "×"));
    }), [...messages].map((message) => h("span", { class: "bad", role: "alert" }, message)));
    this.element.hidden = !this.all.length;
  }
}
