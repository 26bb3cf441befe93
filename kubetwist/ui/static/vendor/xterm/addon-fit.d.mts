// What the page uses of xterm.js' addon fit, for the type checker.
import type { Addon, Terminal } from "./xterm.mjs";
export class FitAddon implements Addon {
  activate(terminal: Terminal): void;
  dispose(): void;
  fit(): void;
}
