// Files and folders that a user chooses or drops.

import { filesOf, readFiles } from "../lib/files.js";

/** @typedef {import("../lib/files.js").Readable} Readable */

/** Read chosen files. @param {FileList} list */
export const chosenFiles = (list) => readFiles([...list].map((file) => [file.webkitRelativePath || file.name, file]));

/** Read dropped files and folders. @param {DataTransfer} transfer */
export async function droppedFiles(transfer) {
  // The items are available only during the event.
  const items = [...transfer.items].filter((item) => item.kind === "file").map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const entries = items.flatMap(({ entry }) => entry ?? []);
  const alone = items.flatMap(({ entry, file }) => (!entry && file ? [/** @type {[string, Readable]} */ ([file.name, file])] : []));
  return readFiles([...alone, ...await filesOf(/** @type {import("../lib/files.js").Entry[]} */ (entries))]);
}
