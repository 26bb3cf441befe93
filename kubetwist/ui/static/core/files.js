// Files and folders that a user chooses or drops.

/** @typedef {{ name: string, text: string }} TextFile `name` is the path in the folder. */

const SUFFIX = /\.(?:ya?ml|json)$/i;
const MAX_FILES = 5000;
/** The maximum size in bytes of all files together. */
export const MAX_BYTES = 10_000_000;

/** Return all files of an entry, which may be a folder. @param {any} entry A FileSystemEntry. @returns {Promise<[string, File][]>} */
async function filesOf(entry) {
  if (entry.isFile) return [[entry.fullPath.replace(/^\//, ""), await new Promise((done, fail) => entry.file(done, fail))]];
  const reader = entry.createReader();
  /** @type {[string, File][]} */
  const found = [];
  for (;;) {
    /** @type {any[]} */
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length || found.length > MAX_FILES) return found;
    for (const one of some) found.push(...await filesOf(one));
  }
}

/**
 * Return the files of YAML and JSON among some files, in the order of their names.
 *
 * @param {[string, File][]} files
 * @returns {Promise<{ files: TextFile[], skipped: number, tooMuch: boolean }>} No file if they are too large together.
 */
async function readFiles(files) {
  const wanted = files.filter(([name]) => SUFFIX.test(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  const skipped = files.length - wanted.length;
  if (wanted.reduce((sum, [, file]) => sum + file.size, 0) > MAX_BYTES) return { files: [], skipped, tooMuch: true };
  return { files: await Promise.all(wanted.map(async ([name, file]) => ({ name, text: await file.text() }))), skipped, tooMuch: false };
}

/** Read chosen files. @param {FileList} list */
export const chosenFiles = (list) => readFiles([...list].map((file) => [file.webkitRelativePath || file.name, file]));

/** Read dropped files and folders. @param {DataTransfer} transfer */
export async function droppedFiles(transfer) {
  // The items are available only during the event.
  const items = [...transfer.items].filter((item) => item.kind === "file").map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found = await Promise.all(items.map(async ({ entry, file }) => (entry ? filesOf(entry) : file ? [/** @type {[string, File]} */ ([file.name, file])] : [])));
  return readFiles(found.flat());
}
