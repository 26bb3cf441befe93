// The structure of a YAML text with positions. The parser accepts incomplete texts, as they occur while someone types;
// whether a text is valid is decided by js-yaml. Anchors and tags are skipped, aliases are scalars, and explicit keys
// ("? key") are not supported.

/**
 * @typedef {object} Entry A key and its value.
 * @property {string} key
 * @property {number} from The start of the key, as an offset in the text.
 * @property {number} to The end of the key.
 * @property {Tree | null} value
 * @property {boolean} [partial] Whether the colon is missing.
 */

/**
 * @typedef {object} Tree A node.
 * @property {"map" | "seq" | "scalar"} type
 * @property {number} from Offset in the text.
 * @property {number} to
 * @property {Entry[]} [entries] Of a map.
 * @property {(Tree | null)[]} [items] Of a sequence.
 * @property {number[]} [starts] The offsets of the items of a sequence.
 * @property {string} [text] The value of a scalar; empty for block scalars.
 * @property {boolean} [plain] Whether a scalar is not quoted and no block scalar.
 */

/** @typedef {{ from: number, to: number, indent: number, empty: boolean }} Line */
/** @typedef {(string | number)[]} Path Keys of maps and indexes of sequences. */

// Nesting beyond it is not parsed; recursion would exhaust the stack.
const MAX_DEPTH = 200;

/**
 * Split a text into its documents.
 *
 * @param {string} text
 * @returns {{ from: number, to: number }[]} Without the markers.
 */
export function documentsOf(text) {
  const found = [];
  let start = 0;
  for (const marker of text.matchAll(/^(?:---|\.\.\.)(?=[ \t\r\n]|$)[ \t]*/gm)) {
    found.push({ from: start, to: marker.index });
    start = marker.index + marker[0].length;
  }
  found.push({ from: start, to: text.length });
  return found.filter(({ from, to }) => !/^(?:[ \t]*(?:#.*|%.*)?(?:\r?\n|$))*$/.test(text.slice(from, to)));
}

/** @param {string} character */
const isSpace = (character) => character === " " || character === "\t" || character === "\r" || character === "\n" || character === "";

const ESCAPES = /** @type {Record<string, string>} */ ({ n: "\n", t: "\t", r: "\r", 0: "\0", b: "\b", f: "\f", v: "\v", a: "\x07", e: "\x1b", N: "\x85", _: "\xa0", L: "\u2028", P: "\u2029" });

/** Return the value of a quoted scalar. @param {string} text With quotes. */
function unquote(text) {
  const single = text[0] === "'", inner = text.slice(1, text.at(-1) === text[0] && text.length > 1 ? -1 : undefined);
  const folded = inner.includes("\n") ? inner.replace(/[ \t]*\r?\n[ \t]*/g, (one) => (single || !one.startsWith("\\") ? " " : one)) : inner;
  if (single) return folded.replaceAll("''", "'");
  return folded.replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^]))/g, (all, x, u, U, other) => {
    const code = parseInt(x || u || U, 16);
    return other === undefined ? (code <= 0x10ffff ? String.fromCodePoint(code) : all) : ESCAPES[other] ?? other;
  });
}

class Parser {
  /** @param {string} text @param {number} from @param {number} to */
  constructor(text, from, to) {
    this.text = text;
    this.end = to;
    /** @type {Line[]} */
    this.lines = [];
    /** The index of the current line. */
    this.at = 0;
    this.depth = 0;
    for (let start = from; start < to;) {
      const found = text.indexOf("\n", start), end = found < 0 || found > to ? to : found;
      let first = start;
      while (first < end && text[first] === " ") first++;
      let visible = first;
      while (visible < end && isSpace(text[visible])) visible++;
      this.lines.push({ from: start, to: end > first && text[end - 1] === "\r" ? end - 1 : end, indent: first - start, empty: visible >= end || text[visible] === "#" });
      start = end + 1;
    }
  }

  /** Move to the next line with content, from the current one on. @returns {Line | undefined} */
  content() {
    while (this.at < this.lines.length && this.lines[this.at].empty) this.at++;
    return this.lines[this.at];
  }

  /** Return the offset at which the lines end that are indented more than a column. @param {number} column @param {string} [closing] Characters that may begin a line of the column. */
  region(column, closing = "") {
    let index = this.at + 1;
    for (; index < this.lines.length; index++) {
      const { from, indent, empty } = this.lines[index];
      if (!empty && indent <= column && !(indent === column && closing.includes(this.text[from + indent]))) break;
    }
    return this.lines[index - 1].to;
  }

  /** Move to the line after an offset. @param {number} offset */
  leave(offset) {
    while (this.at < this.lines.length && this.lines[this.at].to < offset) this.at++;
    this.at++;
  }

  /** Return where a comment or the line's end begins. @param {number} from @param {number} to */
  visibleEnd(from, to) {
    const text = this.text.slice(from, to);
    let end = text.length;
    for (let found = text.indexOf("#"); found >= 0; found = text.indexOf("#", found + 1)) {
      if (!found || isSpace(text[found - 1])) { end = found; break; }
    }
    while (end > 0 && isSpace(text[end - 1])) end--;
    return from + end;
  }

  /** Return the offset after a quoted scalar; `limit` if it is not closed. @param {number} from @param {number} limit */
  quotedEnd(from, limit) {
    const quote = this.text[from];
    for (let at = from + 1; at < limit; at++) {
      const character = this.text[at];
      if (quote === '"' && character === "\\") at++;
      else if (character === quote) {
        if (quote === "'" && this.text[at + 1] === "'") at++;
        else return at + 1;
      }
    }
    return limit;
  }

  /** Skip spaces, anchors and tags. @param {number} from @param {number} to */
  skipProperties(from, to) {
    const { text } = this;
    for (;;) {
      while (from < to && isSpace(text[from])) from++;
      if (from >= to || (text[from] !== "&" && text[from] !== "!")) return from;
      while (from < to && !isSpace(text[from])) from++;
    }
  }

  /**
   * Return the key at an offset of a block map.
   *
   * @param {number} from
   * @param {number} to The end of the line.
   * @returns {{ key: string, from: number, to: number, after: number } | null} `after` is the offset after the colon.
   */
  keyAt(from, to) {
    const { text } = this;
    from = this.skipProperties(from, to);
    const first = text[from];
    if (from >= to || first === "#") return null;
    if (first === '"' || first === "'") {
      const end = this.quotedEnd(from, to);
      let colon = end;
      while (colon < to && isSpace(text[colon])) colon++;
      if (text[colon] !== ":" || colon >= to || (colon + 1 < to && !isSpace(text[colon + 1]))) return null;
      return { key: unquote(text.slice(from, end)), from, to: end, after: colon + 1 };
    }
    if ("[]{},|>%@`".includes(first) || ((first === "-" || first === "?" || first === ":") && (from + 1 >= to || isSpace(text[from + 1])))) return null;
    const limit = this.visibleEnd(from, to);
    for (let colon = text.indexOf(":", from); colon >= 0 && colon < limit; colon = text.indexOf(":", colon + 1)) {
      if (colon + 1 < limit && !isSpace(text[colon + 1])) continue;
      let end = colon;
      while (end > from && isSpace(text[end - 1])) end--;
      return { key: text.slice(from, end), from, to: end, after: colon + 1 };
    }
    return null;
  }

  /** @param {number} at @param {number} to */
  isDash(at, to) { return this.text[at] === "-" && (at + 1 >= to || isSpace(this.text[at + 1])); }

  /**
   * Parse the node at an offset in the current line, and move to the line after it.
   *
   * @param {number} from
   * @param {number} parent The column of the parent; nodes have a greater one.
   * @returns {Tree}
   */
  node(from, parent) {
    const line = this.lines[this.at], start = from, column = from - line.from;
    from = this.skipProperties(from, line.to);
    if (this.depth > MAX_DEPTH || from >= line.to) { this.leave(line.to); return { type: "scalar", from, to: line.to, text: "", plain: true }; }
    this.depth++;
    try {
      if (this.isDash(from, line.to)) return this.sequence(from, column);
      if (this.keyAt(from, line.to) || this.partial(from, column)) return this.map(start, column);
      return this.scalar(from, parent);
    } finally { this.depth--; }
  }

  /** Return whether the line is a key without colon, followed by a line with a key in the same column. @param {number} from @param {number} column */
  partial(from, column) {
    if ("[]{}\"'|>".includes(this.text[from])) return false;
    let next = this.at + 1;
    while (next < this.lines.length && this.lines[next].empty) next++;
    const line = this.lines[next];
    return line !== undefined && line.indent === column && this.keyAt(line.from + column, line.to) !== null;
  }

  /** @param {number} from @param {number} column @returns {Tree} */
  sequence(from, column) {
    /** @type {(Tree | null)[]} */
    const items = [];
    /** @type {number[]} */
    const starts = [];
    let dash = from, end = from;
    for (;;) {
      const line = this.lines[this.at];
      let inner = dash + 1;
      while (inner < line.to && isSpace(this.text[inner])) inner++;
      starts.push(dash);
      if (inner < line.to && this.text[inner] !== "#") items.push(this.node(inner, column));
      else { this.at++; items.push(this.below(column, false)); }
      end = Math.max(dash + 1, items.at(-1)?.to ?? 0);
      const next = this.content();
      if (!next || next.indent !== column || !this.isDash(next.from + column, next.to)) return { type: "seq", from, to: end, items, starts };
      dash = next.from + column;
    }
  }

  /** @param {number} from @param {number} column @returns {Tree} */
  map(from, column) {
    /** @type {Entry[]} */
    const entries = [];
    let at = from, end = from;
    for (;;) {
      const line = this.lines[this.at], found = this.keyAt(at, line.to);
      if (found) {
        const value = this.value(found.after, column);
        entries.push({ key: found.key, from: found.from, to: found.to, value });
        end = Math.max(found.after, value?.to ?? 0);
      } else {
        end = this.visibleEnd(at, line.to);
        entries.push({ key: this.text.slice(at, end), from: at, to: end, value: null, partial: true });
        this.at++;
      }
      // Lines that are indented more than the keys belong to no key: the text is not valid.
      let next = this.content();
      while (next && next.indent > column) { this.at++; next = this.content(); }
      if (!next || next.indent !== column || this.isDash(next.from + column, next.to)) return { type: "map", from, to: end, entries };
      at = next.from + column;
    }
  }

  /** Return the value after a colon. @param {number} from @param {number} column The column of the key. */
  value(from, column) {
    const line = this.lines[this.at];
    const start = this.skipProperties(from, line.to);
    if (start < line.to && this.text[start] !== "#") return this.scalar(start, column);
    this.at++;
    return this.below(column, true);
  }

  /** Return the node in the following lines. @param {number} column Of the parent. @param {boolean} key Whether the parent is a key. */
  below(column, key) {
    const next = this.content();
    if (!next || next.indent < column || (next.indent === column && !(key && this.isDash(next.from + column, next.to)))) return null;
    return this.node(next.from + next.indent, column);
  }

  /** Return a scalar or a flow collection. @param {number} from @param {number} column Of the parent. @returns {Tree} */
  scalar(from, column) {
    const { text } = this, line = this.lines[this.at], first = text[from];
    if (first === "{" || first === "[") {
      const [tree, end] = this.flow(from, this.region(column, "]}"), 0);
      this.leave(end);
      return tree;
    }
    if (first === "|" || first === ">") {
      const end = this.region(column);
      this.leave(end);
      return { type: "scalar", from, to: end, text: "" };
    }
    if (first === '"' || first === "'") {
      const end = this.quotedEnd(from, this.region(column));
      this.leave(end);
      return { type: "scalar", from, to: end, text: unquote(text.slice(from, end)) };
    }
    let end = this.visibleEnd(from, line.to);
    const region = this.region(column);
    this.at++;
    while (this.at < this.lines.length && this.lines[this.at].to <= region) {
      const next = this.lines[this.at++];
      if (!next.empty) end = this.visibleEnd(next.from, next.to);
    }
    const value = text.slice(from, end);
    return { type: "scalar", from, to: end, text: value.includes("\n") ? value.replace(/[ \t]*\r?\n[ \t]*/g, " ") : value, plain: true };
  }

  /** Skip spaces, line ends and comments in flow style. @param {number} at @param {number} limit */
  skipFlow(at, limit) {
    for (;;) {
      while (at < limit && isSpace(this.text[at])) at++;
      if (at >= limit || this.text[at] !== "#") return at;
      while (at < limit && this.text[at] !== "\n") at++;
    }
  }

  /**
   * Return a node in flow style, and the offset after it.
   *
   * @param {number} from
   * @param {number} limit
   * @param {number} depth
   * @returns {[Tree, number]}
   */
  flow(from, limit, depth) {
    const { text } = this, open = text[from];
    if (open === '"' || open === "'") {
      const end = this.quotedEnd(from, limit);
      return [{ type: "scalar", from, to: end, text: unquote(text.slice(from, end)) }, end];
    }
    if ((open !== "{" && open !== "[") || depth > MAX_DEPTH) return this.flowPlain(from, limit);
    /** @type {Tree} */
    const tree = open === "{" ? { type: "map", from, to: limit, entries: [] } : { type: "seq", from, to: limit, items: [], starts: [] };
    let at = from + 1;
    for (;;) {
      at = this.skipProperties(this.skipFlow(at, limit), limit);
      at = this.skipFlow(at, limit);
      if (at >= limit) return [tree, limit];
      if (text[at] === "}" || text[at] === "]") { tree.to = at + 1; return [tree, at + 1]; }
      if (text[at] === "," || text[at] === ":") { at++; continue; }
      const [first, end] = this.flow(at, limit, depth + 1);
      at = this.skipFlow(end, limit);
      if (text[at] !== ":" || at >= limit) {
        if (tree.entries) tree.entries.push({ key: first.text ?? "", from: first.from, to: first.to, value: null, partial: true });
        else { tree.items?.push(first); tree.starts?.push(first.from); }
        continue;
      }
      at = this.skipProperties(this.skipFlow(at + 1, limit), limit);
      /** @type {Tree | null} */
      let value = null;
      if (at < limit && !",}]".includes(text[at])) [value, at] = this.flow(at, limit, depth + 1);
      const entry = { key: first.text ?? "", from: first.from, to: first.to, value };
      if (tree.entries) tree.entries.push(entry);
      else { tree.items?.push({ type: "map", from: first.from, to: at, entries: [entry] }); tree.starts?.push(first.from); }
    }
  }

  /** @param {number} from @param {number} limit @returns {[Tree, number]} */
  flowPlain(from, limit) {
    const { text } = this;
    let at = from;
    while (at < limit && !",[]{}".includes(text[at]) && !(text[at] === "#" && isSpace(text[at - 1])) && !(text[at] === ":" && (at + 1 >= limit || isSpace(text[at + 1]) || ",[]{}".includes(text[at + 1])))) at++;
    let end = at;
    while (end > from && isSpace(text[end - 1])) end--;
    return [{ type: "scalar", from, to: end, text: text.slice(from, end).replace(/\s*\n\s*/g, " "), plain: true }, Math.max(at, from + 1)];
  }

  /** @returns {Tree | null} */
  root() {
    const line = this.content();
    return line ? this.node(line.from + line.indent, -1) : null;
  }
}

/**
 * Return the tree of one document of a text.
 *
 * @param {string} text
 * @param {number} [from]
 * @param {number} [to]
 * @returns {Tree | null} null without content.
 */
export const treeOf = (text, from = 0, to = text.length) => new Parser(text, from, to).root();

/** Return the value of a key that is a scalar; "" otherwise. @param {Tree | null} tree @param {string} key */
export const textOf = (tree, key) => tree?.entries?.find((one) => one.key === key)?.value?.text ?? "";

/**
 * Return where a path is.
 *
 * @param {Tree | null} tree
 * @param {Path} path
 * @returns {{ key: [number, number], value: Tree | null, found: number }} The range of the last key (or of the first
 *   characters of an item) on the path that exists, its value, and how many parts of the path exist.
 */
export function locate(tree, path) {
  const start = tree?.from ?? 0;
  /** @type {[number, number]} */
  let key = [start, tree ? (tree.entries?.[0]?.to ?? Math.min(tree.to, start + 1)) : 0];
  let found = 0;
  for (const part of path) {
    /** @type {Tree | null} */
    let next;
    if (tree?.entries) {
      const entry = tree.entries.findLast((one) => one.key === String(part));
      if (!entry) break;
      key = [entry.from, entry.to];
      next = entry.value;
    } else if (tree?.items && typeof part === "number" && part < tree.items.length) {
      next = tree.items[part];
      const first = next?.entries?.[0];
      key = first ? [first.from, first.to] : next ? [next.from, Math.max(next.from + 1, next.type === "scalar" ? next.to : next.from + 1)] : [tree.starts?.[part] ?? 0, (tree.starts?.[part] ?? 0) + 1];
    } else break;
    tree = next;
    found++;
  }
  return { key, value: tree, found };
}

/**
 * Return the path of the key or value at an offset.
 *
 * @param {Tree | null} tree
 * @param {number} offset
 * @returns {{ path: Path, onKey: boolean, from: number, to: number } | null}
 */
export function pathAt(tree, offset) {
  /** @type {Path} */
  const path = [];
  for (;;) {
    if (!tree) return null;
    if (tree.entries) {
      const entry = tree.entries.findLast((one) => one.from <= offset);
      if (!entry) return null;
      path.push(entry.key);
      if (offset <= entry.to) return { path, onKey: true, from: entry.from, to: entry.to };
      tree = entry.value;
    } else if (tree.items && tree.starts) {
      const index = tree.starts.findLastIndex((start) => start <= offset);
      if (index < 0) return null;
      path.push(index);
      tree = tree.items[index];
    } else return offset >= tree.from && offset <= tree.to ? { path, onKey: false, from: tree.from, to: tree.to } : null;
  }
}

// It occurs in no text that a user types.
const MARK = "\u{f8ff}\u{f8fe}";
const WORD = /[\w.\-/$]/;

/**
 * @typedef {object} Place Where something is being typed.
 * @property {Path} path Of the map with the key, or of the value.
 * @property {"key" | "value" | "either"} wanted "either" in a line of its own, or after a dash: only the schema decides it.
 * @property {number} from The start of the word.
 * @property {number} to The end of the word.
 * @property {string[]} present The other keys of the map.
 * @property {boolean} colon Whether a colon follows the key.
 * @property {Tree | null} tree The tree of the document, with the word replaced.
 */

/**
 * Return what is being typed at an offset of a document.
 *
 * @param {string} text The document.
 * @param {number} offset
 * @returns {Place | null} null inside of quoted texts, block scalars and comments.
 */
export function placeAt(text, offset) {
  let from = offset, to = offset;
  while (from > 0 && WORD.test(text[from - 1])) from--;
  while (to < text.length && WORD.test(text[to])) to++;
  // A dash before the word is an item of a sequence.
  if (text[from] === "-" && from === to - 1) from = to;
  const tree = treeOf(`${text.slice(0, from)}${MARK}${text.slice(to)}`);
  const base = { from, to, tree };
  /** @type {Path} */
  const path = [];
  for (let here = tree; here;) {
    if (here.entries) {
      const entry = here.entries.findLast((one) => one.from <= from);
      if (!entry) return null;
      if (entry.key === MARK) {
        const present = here.entries.filter((one) => one !== entry).map((one) => one.key);
        return { ...base, path, wanted: "key", present, colon: !entry.partial };
      }
      path.push(entry.key);
      if (entry.value?.text === MARK && entry.value.plain) {
        return { ...base, path, wanted: text.slice(entry.to, entry.value.from).includes("\n") ? "either" : "value", present: [], colon: false };
      }
      here = entry.value;
    } else if (here.items && here.starts) {
      const index = here.starts.findLastIndex((start) => start <= from);
      if (index < 0) return null;
      path.push(index);
      here = here.items[index];
      if (here?.text === MARK && here.plain) return { ...base, path, wanted: "either", present: [], colon: false };
    } else return here.text === MARK && here.plain ? { ...base, path, wanted: "either", present: [], colon: false } : null;
  }
  return null;
}

/**
 * Return the indentation of the line after a text; null in flow style.
 *
 * @param {string} before The line up to the cursor.
 */
export function nextIndent(before) {
  if (/[{[(,]\s*$/.test(before)) return null;
  // A key after a dash is a member of the item.
  const indent = /^ *(?:- +)*/.exec(before)?.[0].length ?? 0;
  return indent + (/(?:^|[:\s])[|>][+\-0-9]*$|:\s*$/.test(before.slice(indent)) ? 2 : 0);
}

/**
 * Split a field of a Status at one place, as far as its syntax is known.
 *
 * @param {string} rest
 * @returns {{ text: string, rest: string } | null} The text in brackets, and what follows; null without brackets.
 */
function bracket(rest) {
  if (rest[0] !== "[") return null;
  let depth = 0;
  for (let at = 0, quoted = false; at < rest.length; at++) {
    if (quoted && rest[at] === "\\") at++;
    else if (rest[at] === '"') quoted = !quoted;
    else if (!quoted && rest[at] === "[") depth++;
    else if (!quoted && rest[at] === "]" && !--depth) return { text: rest.slice(1, at), rest: rest.slice(at + 1) };
  }
  return null;
}

/** Return the index of the item that a selection names: "0", 'name="x",port=80', '="x"'. @param {Tree} tree @param {string} selection */
function itemOf(tree, selection) {
  if (/^\d+$/.test(selection)) return Number(selection) < (tree.items?.length ?? 0) ? Number(selection) : -1;
  const wanted = [...selection.matchAll(/([^=,"]*)=("(?:[^"\\]|\\.)*"|[^,]*)/g)].map(([, key, value]) => {
    try { return [key.trim(), String(value.startsWith('"') ? JSON.parse(value) : value)]; } catch { return [key.trim(), value]; }
  });
  // A key that is missing has its default value.
  return tree.items?.findIndex((item) => wanted.length > 0 && wanted.every(([key, value], index) => {
    if (!key) return item?.text === value;
    const entry = item?.entries?.find((one) => one.key === key);
    return entry ? entry.value?.text === value : index > 0;
  })) ?? -1;
}

/**
 * Return the path of a field as the server writes it: "spec.containers[0].image", "metadata.labels[a.b/c]", and of
 * conflicts '.spec.containers[name="web"].image'. Names may contain dots; those that exist in the text take precedence.
 *
 * @param {Tree | null} tree
 * @param {string} field
 * @returns {Path} As far as it exists; one further part if that does not exist.
 */
export const pathOfField = (tree, field) => followed(tree, field).path;

/** @param {Tree | null} tree @param {string} field @returns {{ path: Path, left: number }} `left` is the length of the part of the field that does not exist. */
function followed(tree, field) {
  const rest = field.replace(/^\./, "");
  if (!rest) return { path: [], left: 0 };
  const missing = { path: /** @type {Path} */ ([]), left: rest.length };
  const then = (/** @type {string | number} */ part, /** @type {Tree | null} */ value, /** @type {string} */ after) => {
    const { path, left } = followed(value, after);
    return { path: [part, ...path], left };
  };
  const inner = bracket(rest);
  if (tree?.items) {
    const index = inner ? itemOf(tree, inner.text) : -1;
    return inner && index >= 0 ? then(index, tree.items[index], inner.rest) : missing;
  }
  if (inner) {
    const entry = tree?.entries?.find((one) => one.key === inner.text || `"${one.key}"` === inner.text);
    return entry ? then(entry.key, entry.value, inner.rest) : { ...missing, path: [inner.text] };
  }
  let best = { ...missing, path: /** @type {Path} */ ([/^[^.[]*/.exec(rest)?.[0] ?? rest]) };
  for (const { key, value } of tree?.entries ?? []) {
    if (!key || !rest.startsWith(key) || (rest.length > key.length && !".[".includes(rest[key.length]))) continue;
    const found = then(key, value, rest.slice(key.length));
    if (found.left < best.left || (found.left === best.left && key.length > String(best.path[0]).length)) best = found;
  }
  return best;
}
