import assert from "node:assert/strict";
import test from "node:test";

import { difference } from "../../../kubetwist/ui/static/lib/lines.js";
import { forSeeds } from "./random.js";

const texts = (lines) => [lines.filter(([sign]) => sign !== "+"), lines.filter(([sign]) => sign !== "-")].map((side) => side.map(([, line]) => line).join("\n"));

test("both texts can be read from their difference, which is the shortest one", () => {
  forSeeds(300, (random) => {
    const text = () => Array.from({ length: Math.floor(random() * 8) + 1 }, () => "abc"[Math.floor(random() * 3)]).join("\n");
    const before = text(), after = text();
    const lines = difference(before, after);
    assert.deepEqual(texts(lines), [before, after]);
    assert.equal(lines.filter(([sign]) => sign === " ").length, longest(before.split("\n"), after.split("\n")));
  });
});

/** Return the length of the longest common subsequence by trying all. */
function longest(a, b) {
  if (!a.length || !b.length) return 0;
  if (a[0] === b[0]) return 1 + longest(a.slice(1), b.slice(1));
  return Math.max(longest(a.slice(1), b), longest(a, b.slice(1)));
}

test("large texts without common lines are compared as a whole", () => {
  const text = (sign) => Array.from({ length: 3000 }, (_, index) => `${sign}${index}`).join("\n");
  const lines = difference(text("a"), text("b"));
  assert.deepEqual(texts(lines), [text("a"), text("b")]);
});

test("equal texts have no changes", () => {
  assert.deepEqual(difference("a\nb", "a\nb"), [[" ", "a"], [" ", "b"]]);
});
