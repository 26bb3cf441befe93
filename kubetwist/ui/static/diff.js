// The line-based difference of two texts.

import { h } from "./dom.js";

const MAX_CELLS = 4_000_000;

/** Return [[" " | "-" | "+", line]...], by the longest common subsequence. */
export function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const one = a.slice(start, a.length - end), two = b.slice(start, b.length - end);
  const lines = a.slice(0, start).map((line) => [" ", line]);
  if (one.length * two.length > MAX_CELLS) lines.push(...one.map((line) => ["-", line]), ...two.map((line) => ["+", line]));
  else {
    const width = two.length + 1;
    const longest = new Uint32Array((one.length + 1) * width);
    for (let i = one.length - 1; i >= 0; i--) {
      for (let j = two.length - 1; j >= 0; j--) {
        longest[i * width + j] = one[i] === two[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    let i = 0, j = 0;
    while (i < one.length || j < two.length) {
      if (i < one.length && j < two.length && one[i] === two[j]) { lines.push([" ", one[i]]); i++; j++; }
      else if (i < one.length && (j >= two.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) lines.push(["-", one[i++]]);
      else lines.push(["+", two[j++]]);
    }
  }
  lines.push(...a.slice(a.length - end).map((line) => [" ", line]));
  return lines;
}

/** Return the changes with three lines of context; null without changes. */
export function diffView(before, after) {
  const lines = difference(before, after);
  const near = new Uint8Array(lines.length);
  lines.forEach(([sign], index) => { if (sign !== " ") near.fill(1, Math.max(0, index - 3), index + 4); });
  if (!near.includes(1)) return null;
  const element = h("div", { class: "diff", tabindex: "0", "aria-label": "Changes" });
  let skipped = 0;
  const flush = () => { if (skipped) element.append(h("div", { class: "skip" }, `  … ${skipped} unchanged ${skipped === 1 ? "line" : "lines"}`)); skipped = 0; };
  lines.forEach(([sign, line], index) => {
    if (!near[index]) { skipped++; return; }
    flush();
    element.append(h("div", { class: sign === "+" ? "add" : sign === "-" ? "gone" : "" }, `${sign} ${line}`));
  });
  flush();
  return element;
}
