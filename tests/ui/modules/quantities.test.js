import assert from "node:assert/strict";
import test from "node:test";

import { bytesText, quantityOf } from "../../../kubetwist/ui/static/lib/quantities.js";

test("quantityOf reads all notations", () => {
  for (const [text, value] of [["1", 1], ["250m", 0.25], ["1Gi", 2 ** 30], ["1.5k", 1500], ["-2", -2], ["1e3", 1000], ["12E-1", 1.2], ["2E", 2e18], [".5", 0.5], [3, 3]]) assert.equal(quantityOf(text), value, String(text));
  for (const text of ["", "Gi", "1 Gi", "1K", "1mi", "0x1", undefined, "1e"]) assert.ok(Number.isNaN(quantityOf(text)), String(text));
});

test("bytesText has at most three digits", () => {
  for (const [bytes, text] of [[0, "0 B"], [999, "999 B"], [1000, "1.0 KiB"], [1536, "1.5 KiB"], [20480, "20 KiB"], [2 ** 40, "1.0 TiB"], [2 ** 60, "1024 PiB"]]) assert.equal(bytesText(bytes), text);
});
