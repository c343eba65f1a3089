// The module of the addon that this page can run, and the worker that computes with it.
import { Remote } from './remote.js';
import { startAddon } from './start_addon.js';

/** Threads need memory that is shared, which pages have that are cross-origin isolated. */
const canShare = () => globalThis.crossOriginIsolated === true;
/** A function that multiplies and adds as relaxed SIMD does (f32x4.relaxed_madd of three zeros), which not every browser has. */
const relaxedProduct = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 15, 65, 0, 253, 15,
  65, 0, 253, 15, 253, 133, 2, 11,
]; // prettier-ignore
export const hasRelaxedSimd = () => WebAssembly.validate(Uint8Array.from(relaxedProduct));

/** More than the processor's do not help, and each takes memory. */
const mostThreads = 16;

/** Where the modules lie: beside this package's files, unless the page says otherwise. */
const defaultBase = new URL('../../native/web/', import.meta.url);

async function compiled(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`headrace: ${url} gives ${response.status} ${response.statusText}`);
  if (response.headers.get('Content-Type')?.startsWith('application/wasm'))
    return WebAssembly.compileStreaming(response);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** {local, connect, threads}: the page's own instance, and a worker that lives. */
export async function startEngine({ base = defaultBase, threads } = {}) {
  const wanted = threads ?? Math.min(navigator.hardwareConcurrency || 1, mostThreads);
  const hasThreads = canShare() && wanted > 1;
  const name = `headrace-${hasThreads ? 'threads' : 'single'}${hasRelaxedSimd() ? '-relaxed' : ''}`;
  const factory = new URL(`${name}.mjs`, base).href;
  const compiling = compiled(new URL(`${name}.wasm`, base));
  let remote;
  const connect = () => {
    if (!remote || remote.hasEnded) {
      const worker = new Worker(new URL('./worker.js', import.meta.url), {
        type: 'module',
        name: 'headrace',
      });
      const fresh = new Remote(worker);
      worker.postMessage({ factory, threads: wanted });
      compiling.then(
        (module) => worker.postMessage(module),
        (error) => fresh.end(error.message),
      );
      remote = fresh;
    }
    return remote;
  };
  connect(); // it starts while the module is compiled
  const [{ default: make }, module] = await Promise.all([import(factory), compiling]);
  const local = await startAddon(make, module, { threads: 0 });
  return { local, connect, threads: hasThreads ? wanted : 1 };
}
