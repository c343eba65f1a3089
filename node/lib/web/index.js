// `headrace/web`: navigator.ml and models in a page. Everything is computed in a worker.
import { HeadraceError } from '../models/error.js';
import { createML, install as installOn, interfaces } from '../webnn/index.js';
import { startEngine } from './engine.js';
import { modelsOn } from './models.js';
import { webnnBackend } from './webnn_backend.js';

let started;
let ours; // what install() has put in the page

/** Once; a failure may be tried again. */
function start(options) {
  started ??= startEngine(options).then(
    (engine) => ({
      threads: engine.threads,
      connect: engine.connect,
      ml: createML(webnnBackend(engine.local, engine.connect)),
    }),
    (error) => {
      started = undefined;
      throw error;
    },
  );
  return started;
}

/** Browsers may have navigator.ml and reject every context. */
async function hasOwn() {
  if (navigator.ml === ours) return false;
  try {
    (await navigator.ml.createContext()).destroy();
    return true;
  } catch {
    return false;
  }
}

/**
 * Gives the page navigator.ml, unless the browser's own makes contexts. options: `force` replaces the browser's, too;
 * `threads` of a page that is cross-origin isolated; `base`, the URL of the folder of headrace-*.wasm. Returns
 * {ml, isNative, threads}.
 */
export async function install({ force = false, ...options } = {}) {
  if (!force && (await hasOwn())) return { ml: navigator.ml, isNative: true };
  const { ml, threads } = await start(options);
  ours = ml;
  installOn(globalThis, ml);
  return { ml, isNative: false, threads };
}

const models = modelsOn(async () => (await start()).connect());
/** The engine starts while files are fetched; why it does not, the call tells that needs it. */
const starting =
  (call) =>
  (...given) => {
    start().catch(() => {});
    return call(...given);
  };
/** A model of a URL or of bytes: `load` of `headrace`, with `progress`, `signal` and `cached` for what is fetched. */
export const load = starting(models.load);
export const loadTokenizer = starting(models.loadTokenizer);

export { HeadraceError, interfaces };
