// Commands of a shell: to be copied, and as they are entered.

/**
 * Quote a word for a POSIX shell if it needs it.
 *
 * @param {string} word
 */
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/**
 * Return a command.
 *
 * @param {string[]} words
 */
export const commandLine = (words) => words.map(quoted).join(" ");

/**
 * Return the words of a command as a POSIX shell divides them, without expansions.
 *
 * @param {string} line
 * @returns {string[] | null} null if a quote is not closed, or if there are no words.
 */
export function wordsOf(line) {
  /** @type {string[]} */
  const words = [];
  let rest = line.trimStart();
  while (rest) {
    const [word, after] = wordOf(rest);
    if (after === null) return null;
    words.push(word);
    rest = after.trimStart();
  }
  return words.length ? words : null;
}

const PART = /^(?:'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+))/;

/** @param {string} text Begins with a word. @returns {[string, string | null]} The word and the text after it; null if a quote is not closed. */
function wordOf(text) {
  let word = "";
  while (text && !/^\s/.test(text)) {
    const match = PART.exec(text);
    if (!match) return [word, null];
    word += match[1] ?? match[2]?.replace(/\\(["\\$`])/g, "$1") ?? match[3] ?? match[4];
    text = text.slice(match[0].length);
  }
  return [word, text];
}
