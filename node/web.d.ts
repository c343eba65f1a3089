// `headrace/web`: navigator.ml and models in a page, computed by WebAssembly in a worker.
import type { HeadraceError, LoadOptions, Model, Tokenizer } from './headrace.js';
import type { ML } from './webnn.js';

export { HeadraceError };
export type * from './webnn.js';

export interface InstallOptions {
  /** Replaces the browser's own, too. */
  force?: boolean;
  /** Threads on pages that are cross-origin isolated; default: the processor's, at most 16. */
  threads?: number;
  /** The URL of the folder with headrace-*.mjs and headrace-*.wasm; beside the package's files. */
  base?: string | URL;
}
export interface Installed {
  ml: ML;
  /** The browser's own makes contexts, and stays. */
  isNative: boolean;
  /** 1 where the page is not cross-origin isolated; not of the browser's own. */
  threads?: number;
}
/** Gives the page navigator.ml and the interfaces of WebNN, unless the browser's own makes contexts. */
export function install(options?: InstallOptions): Promise<Installed>;

export interface FetchOptions {
  /** Called while bytes come; total is 0 where the server does not say it. */
  progress?: (state: { loaded: number; total: number }) => void;
  signal?: AbortSignal;
  /** false: the file is not kept in the browser's cache "headrace-models". */
  cached?: boolean;
}
/** A model of a URL (.hrg, .webnn or .json; else ONNX) or of the bytes of an ONNX model. */
export function load(
  source: string | URL | Uint8Array | ArrayBuffer,
  options?: LoadOptions & FetchOptions,
): Promise<Model>;
/** The tokenizer of a tokenizer.json's URL. */
export function loadTokenizer(source: string | URL, options?: FetchOptions): Promise<Tokenizer>;
