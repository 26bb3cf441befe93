import assert from "node:assert/strict";
import test from "node:test";

import { arrange } from "../../../kubetwist/ui/static/lib/graphlayout.js";
import { forSeeds } from "./random.js";

const graph = (owners) => new Map(Object.entries(owners).map(([uid, of]) => [uid, { uid, kind: "K", name: uid, owners: of.map((one) => ({ uid: one })) }]));

test("objects are to the right of their owners", () => {
  const { cells, columns, rows } = arrange(graph({ a: [], b: ["a"], c: ["a"], d: ["b", "gone"] }));
  assert.deepEqual(Object.fromEntries([...cells].map(([uid, { column }]) => [uid, column])), { a: 0, b: 1, c: 1, d: 2 });
  assert.deepEqual([columns, rows], [3, 2]);
});

test("any graph is laid out, each node in a cell", () => {
  forSeeds(200, (random) => {
    const uids = Array.from({ length: 1 + Math.floor(random() * 12) }, (_, index) => `n${index}`);
    const owners = Object.fromEntries(uids.map((uid) => [uid, uids.filter(() => random() < 0.2)]));
    const { cells, columns, rows } = arrange(graph(owners));
    assert.equal(cells.size, uids.length);
    assert.equal(new Set([...cells.values()].map(({ column, row }) => `${column} ${row}`)).size, uids.length);
    for (const { column, row } of cells.values()) assert.ok(column >= 0 && column < columns && row >= 0 && row < rows);
  });
});
