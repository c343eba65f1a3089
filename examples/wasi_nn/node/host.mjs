// Runs a WebAssembly guest that uses models, on Node's WASI:
//   node host.mjs [--alias NAME=MODEL]... [--config JSON] [--max-memory BYTES] [--max-time SECONDS] ADDON.node LIBRARY.so [NAME=]MODEL
//     GUEST.wasm [ARGUMENT...]
// The guest loads the model by that name or as "default", those of --alias by theirs, and other files only from
// HEADRACE_MODEL_ROOT. HEADRACE_CONFIG may hold parameters; see docs/parameters.md.
import { mkdtempSync, rmdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { WASI } from 'node:wasi';
import { boundMemory, runsHere, startClock } from './limits.mjs';
import { alias, config, read } from './options.mjs';

let options, named, addon, library, guest, rest;
try {
  ({ options, rest: [addon, library, named, guest, ...rest] } = read(process.argv.slice(2)));
  if (!guest) throw new Error('GUEST.wasm is missing');
  const [name, model] = alias(named, 'default');
  options.aliases[name] = model;
} catch (error) {
  console.error(`host.mjs: ${error.message}
usage: node host.mjs [--alias NAME=MODEL]... [--config JSON] [--max-memory BYTES] [--max-time SECONDS] ADDON.node LIBRARY.so [NAME=]MODEL \
GUEST.wasm [ARGUMENT...]`);
  process.exit(2);
}

async function run() {
  const empty = mkdtempSync(join(tmpdir(), 'headrace-no-models-'));
  process.env.HEADRACE_LOG ??= 'warn';
  process.env.HEADRACE_MODEL_ROOT ??= empty;
  let nn, instance;
  const memory = () => {
    const exported = instance.exports.memory;
    return exported instanceof WebAssembly.Memory ? exported.buffer : new ArrayBuffer(0);
  };
  try {
    const { open } = createRequire(import.meta.url)(resolve(addon));
    nn = open(resolve(library), JSON.stringify(config(options)));
    const wasi = new WASI({ version: 'preview1', args: [guest, ...rest], preopens: options.folders, returnOnExit: true });
    const imports = Object.entries(nn.imports).map(([name, call]) => [name, (...numbers) => call(memory(), ...numbers)]);
    const binary = await readFile(guest), module = await WebAssembly.compile(binary);
    if (options.maxMemory !== undefined) boundMemory(options.maxMemory, binary);
    await startClock();
    instance = await WebAssembly.instantiate(module, { ...wasi.getImportObject(), wasi_ephemeral_nn: Object.fromEntries(imports) });
    process.exitCode = wasi.start(instance);
  } catch (error) {
    console.error(`host.mjs: ${guest}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    nn?.close();
    rmdirSync(empty);
  }
}

if (await runsHere(options, 'host.mjs')) await run();
