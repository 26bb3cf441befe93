import assert from "node:assert/strict";
import test from "node:test";

import { MAX_BYTES, MAX_FILES, filesOf, readFiles } from "../../../kubetwist/ui/static/lib/files.js";

/** A fake File. */
const content = (text = "", size = text.length) => ({ size, text: async () => text });
/** A fake FileSystemFileEntry. */
const file = (/** @type {string} */ fullPath, text = "") => ({ isFile: true, fullPath, file: (/** @type {(file: any) => void} */ done) => queueMicrotask(() => done(content(text))) });

/** A fake FileSystemDirectoryEntry, whose readers return some entries at a time. */
const folder = (/** @type {string} */ fullPath, /** @type {any[]} */ entries, atOnce = 100) => ({
  isFile: false, fullPath, createReader: () => {
    let next = 0;
    return { readEntries: (/** @type {(entries: any[]) => void} */ done) => queueMicrotask(() => done(entries.slice(next, (next += atOnce)))) };
  },
});

const names = (/** @type {[string, unknown][]} */ found) => found.map(([name]) => name);

test("folders are searched to their last entry, at any depth", async () => {
  const inner = folder("/a/b", [folder("/a/b/c", [file("/a/b/c/d.yaml", "deep")]), folder("/a/b/empty", [])]);
  const many = folder("/many", Array.from({ length: 250 }, (_, index) => file(`/many/${index}.yaml`)));
  const found = await filesOf([folder("/a", [file("/a/1.yaml"), inner, file("/a/2.yaml")], 1), file("/alone.json"), many]);
  assert.deepEqual(names(found).slice(0, 4), ["a/1.yaml", "a/b/c/d.yaml", "a/2.yaml", "alone.json"]);
  assert.equal(found.length, 254);
  assert.equal(await found[1][1].text(), "deep");
  assert.deepEqual(await filesOf([]), []);
});

test("an entry that cannot be read is an error", async () => {
  const fails = (/** @type {any} */ done, /** @type {(error: any) => void} */ fail) => fail(new Error("no permission"));
  await assert.rejects(filesOf([folder("/a", [{ isFile: true, fullPath: "/a/b", file: fails }])]), /no permission/);
  await assert.rejects(filesOf([{ isFile: false, fullPath: "/a", createReader: () => ({ readEntries: fails }) }]), /no permission/);
});

test("the search ends when there are too many files", async () => {
  let read = 0;
  /** A folder without end. @type {any} */
  const endless = { isFile: false, fullPath: "/e", createReader: () => ({ readEntries: (/** @type {(entries: any[]) => void} */ done) => { read += 100; done(Array.from({ length: 100 }, () => file("/e/x.yaml"))); } }) };
  const found = await filesOf([folder("/a", [endless, endless]), file("/b.yaml")]);
  assert.equal(found.length, MAX_FILES + 1);
  assert.ok(read <= MAX_FILES + 200);
  assert.deepEqual(await readFiles(found), { files: [], skipped: 0, tooMuch: true });
});

test("files of YAML and JSON are read in the order of their names", async () => {
  const read = await readFiles([["b.yml", content("2")], ["c.txt", content("x")], ["a/z.JSON", content("1")], ["yaml", content("x")], ["d.yaml.bak", content("x")]]);
  assert.deepEqual(read, { files: [{ name: "a/z.JSON", text: "1" }, { name: "b.yml", text: "2" }], skipped: 3, tooMuch: false });
});

test("the size of all files together is limited; other files do not count", async () => {
  const large = /** @type {[string, ReturnType<typeof content>]} */ (["a.yaml", content("", MAX_BYTES)]);
  assert.equal((await readFiles([large, ["b.txt", content("", MAX_BYTES)]])).tooMuch, false);
  assert.deepEqual(await readFiles([large, ["b.yaml", content("x")]]), { files: [], skipped: 0, tooMuch: true });
});
