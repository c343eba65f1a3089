// Runs a component that uses models by wasi:nn 0.2, in Node:
//   JCO_FOLDER=... node component_host.mjs [--dir FOLDER::NAME] ADDON.node LIBRARY.so NAME=MODEL GUEST.wasm [ARGUMENT...]
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
import { WasiNn } from './wasi_nn.mjs';

const given = process.argv.slice(2), preopens = {};
while (given[0] === '--dir' && given[1]) {
  const [folder, name] = given.splice(0, 2)[1].split('::');
  preopens[name ?? folder] = resolve(folder);
}
const [addon, library, named, guest, ...rest] = given;
if (!guest || !named.includes('=')) {
  console.error(
    'usage: node component_host.mjs [--dir FOLDER::NAME] ADDON.node LIBRARY.so NAME=MODEL GUEST.wasm [ARGUMENT...]');
  process.exit(2);
}
const packages = createRequire(join(process.env.JCO_FOLDER ?? process.cwd(), 'package.json'));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { transpile } = await load('@bytecodealliance/jco');
const { WASIShim } = await load('@bytecodealliance/preview2-shim/instantiation');

const nn = createRequire(import.meta.url)(resolve(addon));
const folder = mkdtempSync(join(tmpdir(), 'headrace-component-'));
process.on('exit', () => rmSync(folder, { recursive: true })); // a guest's own exit ends the process
process.env.HEADRACE_LOG ??= 'warn';
process.env.HEADRACE_MODEL_ROOT ??= folder;
const [name, model] = [named.slice(0, named.indexOf('=')), named.slice(named.indexOf('=') + 1)];
nn.open(resolve(library), JSON.stringify({ model_aliases: { [name]: resolve(model) } }));
try {
  const { files } = await transpile(await readFile(guest), { name: 'guest', instantiation: 'async' });
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  // jco's code looks for a variable at each step of a call: in a plain object that costs a third less of the call.
  process.env = { ...process.env };
  const { instantiate } = await import(pathToFileURL(join(folder, 'guest.js')));
  const sandbox = { preopens, env: {}, args: [guest, ...rest], enableNetwork: false };
  const compile = async (file) => WebAssembly.compile(await readFile(join(folder, file)));
  const wasi = new WASIShim({ sandbox }).getImportObject();
  const { run } = await instantiate(compile, { ...wasi, ...new WasiNn(nn).imports() });
  run.run();
} catch (error) {
  process.exitCode = error?.exitError ? (error.code ?? 1) : 1;
  // A command that fails throws a payload of nothing; why, it has said itself.
  const isCommands = error instanceof Error && 'payload' in error && error.payload === undefined;
  if (!error?.exitError && !isCommands) console.error(`component_host.mjs: ${guest}: ${error?.message ?? error}`);
} finally {
  nn.close();
}
