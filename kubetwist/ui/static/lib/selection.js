// The selected rows of a table: by key, so that they survive updates and sorting.

/** @typedef {{ key: string, uid: string }} Selectable */

export class Selection {
  constructor() {
    /** The uid by the key: a new object of the same name is not selected. @type {Map<string, string>} */
    this.chosen = new Map();
    /** What was selected when the range began. @type {Map<string, string>} */
    this.base = new Map();
    /** The key at which a range begins; "" without one. */
    this.anchor = "";
  }

  get size() { return this.chosen.size; }

  /** @param {string} key */
  has(key) { return this.chosen.has(key); }

  /** Select a row, or deselect it; a range begins there. @param {Selectable} row */
  toggle({ key, uid }) {
    if (!this.chosen.delete(key)) this.chosen.set(key, uid);
    this.begin(key);
  }

  /** Begin a range. @param {string} key */
  begin(key) {
    this.anchor = key;
    this.base = new Map(this.chosen);
  }

  /**
   * Select the rows from the beginning of the range to one row, instead of those of the range before.
   *
   * @param {Selectable[]} rows All visible rows in their order.
   * @param {number} to An index.
   */
  extend(rows, to) {
    const found = rows.findIndex(({ key }) => key === this.anchor), from = found < 0 ? to : found;
    if (found < 0) this.begin(rows[to].key);
    this.chosen = new Map(this.base);
    for (const { key, uid } of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) this.chosen.set(key, uid);
  }

  /** @param {Selectable[]} rows */
  add(rows) {
    for (const { key, uid } of rows) this.chosen.set(key, uid);
    this.base = new Map(this.chosen);
  }

  /** @param {Selectable[]} rows */
  remove(rows) {
    for (const { key } of rows) this.chosen.delete(key);
    this.base = new Map(this.chosen);
  }

  clear() {
    this.chosen = new Map();
    this.begin("");
  }

  /** Deselect rows that no longer exist. @param {Map<string, Selectable>} rows All rows by key. */
  prune(rows) {
    for (const chosen of [this.chosen, this.base]) {
      for (const [key, uid] of chosen) if (rows.get(key)?.uid !== uid) chosen.delete(key);
    }
  }
}
