// The line-based difference of two texts.

/** @typedef {[" " | "-" | "+", string]} Line */

// Beyond it, texts are compared as a whole: the table of the algorithm would need too much memory.
const MAX_CELLS = 4_000_000;

/**
 * Return the lines of both texts, by their longest common subsequence.
 *
 * @param {string} before
 * @param {string} after
 * @returns {Line[]}
 */
export function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const one = a.slice(start, a.length - end), two = b.slice(start, b.length - end);
  /** @type {Line[]} */
  const lines = a.slice(0, start).map((line) => [" ", line]);
  if (one.length * two.length > MAX_CELLS) {
    for (const line of one) lines.push(["-", line]);
    for (const line of two) lines.push(["+", line]);
  } else lines.push(...compared(one, two));
  for (const line of a.slice(a.length - end)) lines.push([" ", line]);
  return lines;
}

/**
 * @param {string[]} one
 * @param {string[]} two
 */
function* compared(one, two) {
  const width = two.length + 1;
  const longest = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = two.length - 1; j >= 0; j--) {
      longest[i * width + j] = one[i] === two[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  let i = 0, j = 0;
  while (i < one.length || j < two.length) {
    if (i < one.length && j < two.length && one[i] === two[j]) { yield /** @type {Line} */ ([" ", one[i]]); i++; j++; }
    else if (i < one.length && (j >= two.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) yield /** @type {Line} */ (["-", one[i++]]);
    else yield /** @type {Line} */ (["+", two[j++]]);
  }
}
