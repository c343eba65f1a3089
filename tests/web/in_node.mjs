// The modules of `make web` in Node, which has relaxed SIMD from 22 on.
import { existsSync, readFileSync } from 'node:fs';

import { hasRelaxedSimd } from '../../node/lib/web/engine.js';
import { startAddon } from '../../node/lib/web/start_addon.js';
import { engineOn } from './engine.mjs';

const modules = new URL('../../node/native/web/', import.meta.url);
const kinds = ['headrace-single', 'headrace-threads'];
export const names = [...kinds, ...kinds.map((kind) => `${kind}-relaxed`)];
export const skipUnbuilt = (name) =>
  !existsSync(new URL(`${name}.wasm`, modules)) && `${name}.wasm is not built: make web builds it`;
export const skipOf = (name) =>
  skipUnbuilt(name) || (name.endsWith('-relaxed') && !hasRelaxedSimd() && 'this Node has no relaxed SIMD');

export const bytesOf = (name) => readFileSync(new URL(`${name}.wasm`, modules));

/** An engine on a module; `started` is what its worker holds. */
export async function engineInNode(name) {
  const module = await WebAssembly.compile(bytesOf(name));
  const { default: make } = await import(new URL(`${name}.mjs`, modules));
  const local = await startAddon(make, module, { threads: 0 });
  const started = await startAddon(make, module, { threads: name.startsWith('headrace-threads') ? 4 : 0 });
  return { ...engineOn(local, started), started };
}
