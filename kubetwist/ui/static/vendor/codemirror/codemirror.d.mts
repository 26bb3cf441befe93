// What the page uses of CodeMirror, for the type checker.
export type Extension = { readonly extension: Extension } | readonly Extension[];
export interface Text { readonly length: number; readonly lines: number; toString(): string; sliceString(from: number, to?: number): string; lineAt(offset: number): Line; line(number: number): Line; }
export interface Line { from: number; to: number; number: number; text: string; }
export interface Change { from: number; to?: number; insert?: string; }
export interface Transaction { changes?: Change | readonly Change[]; selection?: { anchor: number; head?: number }; scrollIntoView?: boolean; effects?: unknown; userEvent?: string; annotations?: unknown; }
export interface Update { docChanged: boolean; selectionSet: boolean; state: EditorState; view: EditorView; transactions: { annotation(type: unknown): unknown }[]; }
export interface Range { anchor: number; from: number; to: number; empty: boolean; head: number; }
export declare class EditorState {
  static create(options: { doc?: string; extensions?: Extension }): EditorState;
  static tabSize: { of(size: number): Extension };
  static phrases: { of(phrases: Record<string, string>): Extension };
  readonly doc: Text;
  readonly selection: { main: Range };
  sliceDoc(from?: number, to?: number): string;
  replaceSelection(text: string): Transaction;
}
export declare class EditorView {
  constructor(options: { state: EditorState; parent: Element | DocumentFragment; root: Document | ShadowRoot });
  static theme(rules: Record<string, Record<string, string>>, options?: { dark?: boolean }): Extension;
  static updateListener: { of(call: (update: Update) => void): Extension };
  static contentAttributes: { of(attributes: Record<string, string>): Extension };
  static scrollIntoView(offset: number, options?: { y?: string }): unknown;
  readonly state: EditorState;
  readonly dom: HTMLElement;
  readonly contentDOM: HTMLElement;
  readonly scrollDOM: HTMLElement;
  dispatch(...transactions: Transaction[]): void;
  focus(): void;
  destroy(): void;
  coordsAtPos(offset: number): { left: number; right: number; top: number; bottom: number } | null;
}
export interface KeyBinding { key: string; run: (view: EditorView) => boolean; shift?: (view: EditorView) => boolean; preventDefault?: boolean; }
export declare const keymap: { of(bindings: readonly KeyBinding[]): Extension };
export interface CompletionOption { label: string; detail?: string; type?: string; boost?: number; info?: () => Node; apply?: string | ((view: EditorView, completion: CompletionOption, from: number, to: number) => void); }
export interface CompletionContext { state: EditorState; pos: number; explicit: boolean; aborted: boolean; }
export interface CompletionResult { from: number; to?: number; options: CompletionOption[]; validFor?: RegExp; }
export declare function autocompletion(options: { override?: ((context: CompletionContext) => CompletionResult | null | Promise<CompletionResult | null>)[]; icons?: boolean; activateOnTyping?: boolean; defaultKeymap?: boolean }): Extension;
export declare const completionKeymap: KeyBinding[];
export declare function acceptCompletion(view: EditorView): boolean;
export declare function startCompletion(view: EditorView): boolean;
export declare function closeBrackets(): Extension;
export declare const closeBracketsKeymap: KeyBinding[];
export declare const defaultKeymap: KeyBinding[];
export declare function history(): Extension;
export declare const historyKeymap: KeyBinding[];
export declare function indentLess(view: EditorView): boolean;
export declare function indentMore(view: EditorView): boolean;
export declare function yaml(): Extension;
export declare function bracketMatching(): Extension;
export declare function foldGutter(): Extension;
export declare const foldKeymap: KeyBinding[];
export declare class HighlightStyle { static define(rules: readonly Record<string, unknown>[]): HighlightStyle; }
export declare function syntaxHighlighting(style: HighlightStyle): Extension;
export declare function indentOnInput(): Extension;
export declare const indentUnit: { of(unit: string): Extension };
export interface LintDiagnostic { from: number; to: number; severity: "error" | "warning"; message: string; }
export declare function lintGutter(): Extension;
export declare const lintKeymap: KeyBinding[];
export declare function setDiagnostics(state: EditorState, diagnostics: readonly LintDiagnostic[]): Transaction;
export declare function highlightSelectionMatches(): Extension;
export declare function search(options: { top?: boolean }): Extension;
export declare const searchKeymap: KeyBinding[];
export declare function drawSelection(): Extension;
export declare function highlightActiveLine(): Extension;
export declare function highlightActiveLineGutter(): Extension;
export declare function lineNumbers(): Extension;
export interface Tooltip { pos: number; end?: number; above?: boolean; create(view: EditorView): { dom: HTMLElement }; }
export declare function hoverTooltip(source: (view: EditorView, offset: number) => Tooltip | null | Promise<Tooltip | null>): Extension;
export declare const tags: Record<string, unknown> & { definition(tag: unknown): unknown };
