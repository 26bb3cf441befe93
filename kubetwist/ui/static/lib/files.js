// The files of folders, and which of them are read.

/** @typedef {{ name: string, text: string }} TextFile `name` is the path in the folder. */
/** @typedef {{ size: number, text: () => Promise<string> }} Readable A File. */

/**
 * @typedef {object} Entry A FileSystemEntry: a file or a folder.
 * @property {boolean} isFile
 * @property {string} fullPath
 * @property {(done: (file: any) => void, fail: (error: any) => void) => void} [file]
 * @property {() => { readEntries: (done: (entries: any[]) => void, fail: (error: any) => void) => void }} [createReader]
 */

const SUFFIX = /\.(?:ya?ml|json)$/i;
/** The maximum number of files, and their maximum size in bytes, together. */
export const MAX_FILES = 5000, MAX_BYTES = 10_000_000;

/**
 * Return the files of entries and of the folders among them, with their paths; at most one more than the maximum.
 *
 * @param {Entry[]} entries
 * @returns {Promise<[string, Readable][]>} It fails if one of them cannot be read.
 */
export async function filesOf(entries) {
  /** @type {[string, Readable][]} */
  const found = [];
  const visit = async (/** @type {Entry} */ entry) => {
    if (found.length > MAX_FILES) return;
    if (entry.isFile) {
      found.push([entry.fullPath.replace(/^\//, ""), await new Promise((done, fail) => entry.file?.(done, fail))]);
      return;
    }
    const reader = entry.createReader?.();
    // A reader returns some entries at a time, and none at the end.
    for (let some = [entry]; reader && some.length && found.length <= MAX_FILES;) {
      some = await new Promise((done, fail) => reader.readEntries(done, fail));
      for (const one of some) await visit(one);
    }
  };
  for (const entry of entries) await visit(entry);
  return found;
}

/**
 * Return the files of YAML and JSON among some files, in the order of their names.
 *
 * @param {[string, Readable][]} files
 * @returns {Promise<{ files: TextFile[], skipped: number, tooMuch: boolean }>} No file if they are too many or too large together.
 */
export async function readFiles(files) {
  const wanted = files.filter(([name]) => SUFFIX.test(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  const skipped = files.length - wanted.length;
  if (files.length > MAX_FILES || wanted.reduce((sum, [, file]) => sum + file.size, 0) > MAX_BYTES) return { files: [], skipped, tooMuch: true };
  return { files: await Promise.all(wanted.map(async ([name, file]) => ({ name, text: await file.text() }))), skipped, tooMuch: false };
}
