// Runs a WebAssembly guest that uses models, on Node's WASI:
//   node host.mjs ADDON.node LIBRARY.so [NAME=]MODEL GUEST.wasm [ARGUMENT...]
// The guest loads the model by that name or as "default", and other files only from HEADRACE_MODEL_ROOT.
// HEADRACE_CONFIG may hold parameters; see docs/parameters.md.
import { mkdtempSync, rmdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { WASI } from 'node:wasi';

const [addon, library, named, guest, ...rest] = process.argv.slice(2);
if (!guest) {
  console.error('usage: node host.mjs ADDON.node LIBRARY.so [NAME=]MODEL GUEST.wasm [ARGUMENT...]');
  process.exit(2);
}
const [, name = 'default', model] = /^(?:([^=]*)=)?(.*)$/s.exec(named);
const nn = createRequire(import.meta.url)(resolve(addon));
const empty = mkdtempSync(join(tmpdir(), 'headrace-no-models-'));
process.env.HEADRACE_LOG ??= 'warn';
process.env.HEADRACE_MODEL_ROOT ??= empty;
nn.open(resolve(library), JSON.stringify({ model_aliases: { [name]: resolve(model) } }));

const wasi = new WASI({ version: 'preview1', args: [guest, ...rest], returnOnExit: true });
let instance;
const memory = () => {
  const exported = instance.exports.memory;
  return exported instanceof WebAssembly.Memory ? exported.buffer : new ArrayBuffer(0);
};
const imports = Object.entries(nn.imports).map(([name, call]) => [name, (...numbers) => call(memory(), ...numbers)]);
try {
  const module = await WebAssembly.compile(await readFile(guest));
  instance = await WebAssembly.instantiate(module, { ...wasi.getImportObject(), wasi_ephemeral_nn: Object.fromEntries(imports) });
  process.exitCode = wasi.start(instance);
} catch (error) {
  console.error(`host.mjs: ${guest}: ${error.message}`);
  process.exitCode = 1;
} finally {
  nn.close();
  rmdirSync(empty);
}
