// The modules of `make web` in Node: those without relaxed SIMD, which Node has from 22 on. Chromium runs the others.
import { existsSync, readFileSync } from 'node:fs';

import { startAddon } from '../../node/lib/web/start_addon.js';
import { engineOn } from './engine.mjs';

const modules = new URL('../../node/native/web/', import.meta.url);
export const names = ['headrace-single', 'headrace-threads'];
export const skipOf = (name) =>
  !existsSync(new URL(`${name}.wasm`, modules)) && `${name}.wasm is not built: make web builds it`;

export const bytesOf = (name) => readFileSync(new URL(`${name}.wasm`, modules));

/** An engine on a module; `started` is what its worker holds. */
export async function engineInNode(name) {
  const module = await WebAssembly.compile(bytesOf(name));
  const { default: make } = await import(new URL(`${name}.mjs`, modules));
  const local = await startAddon(make, module, { threads: 0 });
  const started = await startAddon(make, module, { threads: name === 'headrace-threads' ? 4 : 0 });
  return { ...engineOn(local, started), started };
}
