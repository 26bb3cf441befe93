// What the page uses of js-yaml, for the type checker.
export const CORE_SCHEMA: object;
/** @throws An error with `reason` and `mark.position`, an offset, and `mark.line`. */
export function load(text: string, options?: { schema?: object }): unknown;
/** Return a value as YAML. */
export function dump(value: unknown, options?: { noArrayIndent?: boolean; lineWidth?: number }): string;
