// Blocks of YAML as the server writes it: two spaces of indentation, no flow style.

/** @param {string} line */
const indentOf = (line) => {
  const spaces = line.length - line.trimStart().length;
  // The dash of a list item has the indentation of the list's key, and belongs to its block.
  return spaces * 2 + (line.trimStart().startsWith("- ") || line.trim() === "-" ? 1 : 0);
};

/**
 * Return for each line the end (exclusive) of the block below it; 0 without a block.
 *
 * @param {string[]} lines
 * @returns {number[]}
 */
export function folds(lines) {
  const ends = new Array(lines.length).fill(0);
  /** @type {{ index: number, indent: number }[]} */
  const open = [];
  lines.forEach((line, index) => {
    if (!line.trim()) return;
    const indent = indentOf(line);
    for (let last = open.at(-1); last && last.indent >= indent; last = open.at(-1)) { ends[last.index] = index; open.pop(); }
    open.push({ index, indent });
  });
  for (const one of open) ends[one.index] = lines.length;
  return ends.map((end, index) => (end > index + 1 ? end : 0));
}

/**
 * Return [from, to] of a member at a path; null if it does not exist.
 *
 * @param {string[]} lines
 * @param {...string} keys The path: "metadata", "managedFields".
 * @returns {[number, number] | null}
 */
export function blockOf(lines, ...keys) {
  let from = 0, to = lines.length, indent = 0;
  for (const key of keys) {
    const ends = folds(lines);
    let found = -1;
    for (let index = from; index < to; index++) {
      if (lines[index].startsWith(`${" ".repeat(indent)}${key}:`)) { found = index; break; }
    }
    if (found < 0) return null;
    from = found;
    to = ends[found] || found + 1;
    indent += 2;
    if (keys.at(-1) !== key) from += 1;
  }
  return [from, to];
}

const SERVERS = [["status"], ["metadata", "managedFields"], ["metadata", "resourceVersion"], ["metadata", "uid"],
  ["metadata", "creationTimestamp"], ["metadata", "generation"], ["metadata", "selfLink"], ["metadata", "deletionTimestamp"],
  ["metadata", "deletionGracePeriodSeconds"]];

/**
 * Return the text without the fields that only the server writes.
 *
 * @param {string} text
 */
export function editable(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  for (const keys of SERVERS) {
    const block = blockOf(lines, ...keys);
    if (block) lines.splice(block[0], block[1] - block[0]);
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Return a stable identifier of each foldable line, which does not depend on the lines above it; "" for other lines.
 *
 * @param {string[]} lines
 * @param {number[]} ends As by `folds`.
 */
export function placesOf(lines, ends) {
  /** @type {{ end: number, place: string }[]} */
  const open = [];
  const times = new Map();
  return lines.map((line, index) => {
    while ((open.at(-1)?.end ?? Infinity) <= index) open.pop();
    if (!ends[index]) return "";
    const path = `${open.at(-1)?.place ?? ""}/${line.trim()}`;
    const count = (times.get(path) || 0) + 1;
    times.set(path, count);
    const place = count > 1 ? `${path}#${count}` : path;
    open.push({ end: ends[index], place });
    return place;
  });
}
