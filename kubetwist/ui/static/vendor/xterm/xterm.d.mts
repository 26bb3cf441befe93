// What the page uses of xterm.js, for the type checker.
export interface Disposable { dispose(): void; }
export interface Addon extends Disposable { activate(terminal: Terminal): void; }
export interface Options {
  linkHandler?: { activate(event: MouseEvent, text: string): void };
  theme?: Record<string, string | string[]>;
  fontFamily?: string;
  fontSize?: number;
  scrollback?: number;
  cursorBlink?: boolean;
  disableStdin?: boolean;
  minimumContrastRatio?: number;
}
export class Terminal {
  constructor(options: Options);
  readonly cols: number;
  readonly rows: number;
  readonly textarea: HTMLTextAreaElement | undefined;
  options: Options;
  open(parent: HTMLElement): void;
  focus(): void;
  reset(): void;
  dispose(): void;
  write(data: string | Uint8Array, written?: () => void): void;
  loadAddon(addon: Addon): void;
  onData(listener: (data: string) => void): Disposable;
  onBinary(listener: (data: string) => void): Disposable;
  onResize(listener: (size: { cols: number, rows: number }) => void): Disposable;
  /** The listener returns whether the terminal handles the event. */
  attachCustomKeyEventHandler(listener: (event: KeyboardEvent) => boolean): void;
}
