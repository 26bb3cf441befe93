// The layout of a graph of owners: each object is in a column to the right of its owners.

/** @typedef {{ uid: string, kind: string, name: string, owners: { uid: string }[] }} Node */

/**
 * Return the cell of each node.
 *
 * @param {Map<string, Node>} nodes By their uid.
 * @returns {{ cells: Map<string, { column: number, row: number }>, columns: number, rows: number }} Cycles of owners are allowed.
 */
export function arrange(nodes) {
  /** @type {Map<string, number>} */
  const levels = new Map();
  /** @param {Node} one @param {Set<string>} above @returns {number} */
  const levelOf = (one, above) => {
    const known = levels.get(one.uid);
    if (known !== undefined) return known;
    if (above.has(one.uid)) return 0;
    above.add(one.uid);
    const owners = one.owners.flatMap(({ uid }) => nodes.get(uid) ?? []);
    const found = owners.length ? Math.max(...owners.map((owner) => levelOf(owner, above))) + 1 : 0;
    levels.set(one.uid, found);
    return found;
  };
  /** @type {Node[][]} */
  const columns = [];
  for (const one of nodes.values()) (columns[levelOf(one, new Set())] ||= []).push(one);
  /** @type {Map<string, { column: number, row: number }>} */
  const cells = new Map();
  const filled = columns.filter(Boolean);
  filled.forEach((members, column) => {
    // Below each other in the order of their owners, so that few lines cross.
    const rank = (/** @type {Node} */ one) => Math.min(Infinity, ...one.owners.map(({ uid }) => cells.get(uid)?.row ?? Infinity));
    const ranks = new Map(members.map((one) => [one, rank(one)]));
    const order = (/** @type {Node} */ a, /** @type {Node} */ b) => {
      const one = ranks.get(a) ?? Infinity, other = ranks.get(b) ?? Infinity;
      return one === other ? (a.kind + a.name < b.kind + b.name ? -1 : 1) : one - other;
    };
    members.sort(order).forEach((one, row) => cells.set(one.uid, { column, row }));
  });
  return { cells, columns: filled.length, rows: Math.max(0, ...filled.map((column) => column.length)) };
}
