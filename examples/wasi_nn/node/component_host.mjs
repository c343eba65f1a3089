// Runs a component that uses models by wasi:nn 0.2, in Node:
//   JCO_FOLDER=... node component_host.mjs [--alias NAME=MODEL]... [--config JSON] [--dir FOLDER::NAME]... [--max-memory BYTES]
//     [--max-time SECONDS] ADDON.node LIBRARY.so [NAME=MODEL]... GUEST.wasm [ARGUMENT...]
// jco, of npm's @bytecodealliance/jco in JCO_FOLDER, makes JavaScript of the component; wasi_nn.mjs has what it imports.
// A guest has its arguments, the standard streams, clocks and random numbers, and may read and write in the folders of
// each --dir, under their names. It gets no variables and no network.
// HEADRACE_CONFIG may hold parameters; see docs/guests.md.
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { boundMemory, instantiateOnce, runsHere, startClock } from './limits.mjs';
import { alias, config, read } from './options.mjs';
import { WasiNn } from './wasi_nn.mjs';

let options, addon, library, guest, rest;
try {
  ({ options, rest: [addon, library, ...rest] } = read(process.argv.slice(2)));
  while (rest[0]?.includes('=')) {
    const [name, model] = alias(rest.shift());
    options.aliases[name] = model;
  }
  guest = rest.shift();
  if (!guest) throw new Error('GUEST.wasm is missing');
} catch (error) {
  console.error(`component_host.mjs: ${error.message}
usage: node component_host.mjs [--alias NAME=MODEL]... [--config JSON] [--dir FOLDER::NAME]... [--max-memory BYTES] [--max-time SECONDS] \
ADDON.node LIBRARY.so [NAME=MODEL]... GUEST.wasm [ARGUMENT...]`);
  process.exit(2);
}

const packages = createRequire(join(process.env.JCO_FOLDER ?? process.cwd(), 'package.json'));
const load = (name) => import(pathToFileURL(packages.resolve(name)));

/** The component's own code, as jco writes it to a folder. */
async function translated(binary, folder) {
  const { transpile } = await load('@bytecodealliance/jco');
  const { files } = await transpile(binary, { name: 'guest', instantiation: 'async', importBindings: 'hybrid' });
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  return import(pathToFileURL(join(folder, 'guest.js')));
}

async function run() {
  const folder = mkdtempSync(join(tmpdir(), 'headrace-component-'));
  process.on('exit', () => rmSync(folder, { recursive: true })); // a guest's own exit ends the process
  process.env.HEADRACE_LOG ??= 'warn';
  process.env.HEADRACE_MODEL_ROOT ??= folder;
  let nn;
  try {
    const { open } = createRequire(import.meta.url)(resolve(addon));
    nn = open(resolve(library), JSON.stringify(config(options)));
    const binary = await readFile(guest), { instantiate } = await translated(binary, folder);
    const { WASIShim } = await load('@bytecodealliance/preview2-shim/instantiation');
    // jco's code looks for a variable at each step of a call: in a plain object that costs a third less of the call.
    process.env = { ...process.env };
    const sandbox = { preopens: options.folders, env: {}, args: [guest, ...rest], enableNetwork: false };
    const modules = {};
    const compile = async (file) => modules[file] ??= await WebAssembly.compile(await readFile(join(folder, file)));
    const wasi = new WASIShim({ sandbox }).getImportObject();
    const isBounded = options.maxMemory !== undefined;
    if (isBounded) boundMemory(options.maxMemory, binary);
    await startClock();
    const imports = { ...wasi, ...new WasiNn(nn, options.maxMemory).imports() };
    const component = await instantiate(compile, imports, isBounded ? instantiateOnce() : WebAssembly.instantiate);
    component.run.run();
  } catch (error) {
    process.exitCode = error?.exitError ? (error.code ?? 1) : 1;
    // A command that fails throws a payload of nothing; why, it has said itself.
    const isCommands = error instanceof Error && 'payload' in error && error.payload === undefined;
    if (!error?.exitError && !isCommands) console.error(`component_host.mjs: ${guest}: ${error?.message ?? error}`);
  } finally {
    nn?.close();
  }
}

if (await runsHere(options, 'component_host.mjs')) await run();
