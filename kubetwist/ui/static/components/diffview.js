// The changes between two texts.

import { h, loadStyle } from "../core/dom.js";
import { difference } from "../lib/lines.js";
import { texts } from "../lib/texts.js";

const CONTEXT = 3;

/**
 * Return the changes with three lines of context; null without changes.
 *
 * @param {string} before
 * @param {string} after
 */
export function diffView(before, after) {
  const lines = difference(before, after);
  const near = new Uint8Array(lines.length);
  lines.forEach(([sign], index) => { if (sign !== " ") near.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1); });
  if (!near.includes(1)) return null;
  loadStyle("editor");
  const element = h("div", { class: "diff", tabindex: "0", "aria-label": texts.changes });
  let skipped = 0;
  const flush = () => { if (skipped) element.append(h("div", { class: "skip" }, texts.unchangedLines(skipped))); skipped = 0; };
  lines.forEach(([sign, line], index) => {
    if (!near[index]) { skipped++; return; }
    flush();
    element.append(h("div", { class: sign === "+" ? "add" : sign === "-" ? "gone" : "" }, `${sign} ${line}`));
  });
  flush();
  return element;
}
