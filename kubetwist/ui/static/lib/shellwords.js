// Commands of a shell, to be copied.

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
