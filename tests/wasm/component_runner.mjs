// Runs programs of component_guest.py in Node, by jco and examples/wasi_nn/node/wasi_nn.mjs:
//   JCO_FOLDER=... node component_runner.mjs ADDON.node LIBRARY.so CONFIG COMPONENT.wasm PROGRAMS.json
// Prints what each program gave as a line of JSON; a program that is { broken } failed in the host. bench/guests.py also
// measures by it, `loop`.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GuestFault } from '../../examples/wasi_nn/node/resources.mjs';
import { WasiNn } from '../../examples/wasi_nn/node/wasi_nn.mjs';

const RESULT = 64;
const CODES = ['invalid-argument', 'invalid-encoding', 'timeout', 'runtime-error', 'unsupported-operation', 'too-large',
  'not-found', 'security', 'unknown']; // prettier-ignore

const [addon, library, config, component, programs] = process.argv.slice(2);
const packages = createRequire(join(process.env.JCO_FOLDER, 'package.json'));
const { transpile } = await import(pathToFileURL(packages.resolve('@bytecodealliance/jco')));
const { functions, programs: wanted, mostBytes, loop } = JSON.parse(readFileSync(programs, 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'headrace-component-'));
process.on('exit', () => rmSync(folder, { recursive: true })); // whatever ends the process
const { files } = await transpile(readFileSync(component), { name: 'guest', instantiation: 'async', importBindings: 'hybrid' });
for (const [file, content] of Object.entries(files)) {
  if (!file.includes('/')) writeFileSync(join(folder, file), content);
}
process.env = { ...process.env }; // as component_host.mjs has it
const { instantiate } = await import(pathToFileURL(join(folder, 'guest.js')));
const compile = async (file) => WebAssembly.compile(readFileSync(join(folder, file)));
const { open } = createRequire(import.meta.url)(resolve(addon));

/** "tensor-new" as jco names it: tensorNew. */
const camel = (name) => name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
const decoder = new TextDecoder();

class Guest {
  #handles = new Map();
  constructor(exports) { this.exports = exports; }
  invoke(name, ...numbers) { return this.exports[camel(name)](...numbers); }
  get(at, size) { return Uint8Array.from(this.invoke('get', at, size)); }
  words(at, count) { return [...new Uint32Array(this.get(at, 4 * count).buffer)]; }

  run(program) {
    const told = [];
    for (const [number, [kind, ...rest]] of program.entries()) {
      try {
        if (kind === 'put') this.invoke('put', rest[0], Uint8Array.from(Buffer.from(rest[1], 'hex')));
        if (kind === 'word')
          this.invoke('put', rest[0], new Uint8Array(Uint32Array.of(this.#number(rest[1])).buffer));
        if (kind === 'keep') this.invoke(rest[0], ...rest[1].map((given) => this.#number(given)));
        told.push(kind === 'call' ? this.#call(number, ...rest) : null);
      } catch (error) {
        // What jco's own code and WebAssembly throw is the guest's fault; what the host's functions throw is not.
        if (!(error instanceof GuestFault) && /wasi_nn\/node\//.test(error?.stack ?? '')) return { broken: `step ${number}, ${rest[0]}: ${error.stack}` };
        return [...told, 'trap'];
      }
    }
    return told;
  }
  /** The best round's microseconds of a call of the component's own loop. */
  measured({ of, count, rounds }) {
    const context = this.#handles.get(of);
    let best = Infinity;
    for (let round = 0; round < rounds; ++round) {
      const start = performance.now();
      this.invoke('loop', context, count);
      best = Math.min(best, ((performance.now() - start) / count) * 1e3);
    }
    return best;
  }
  #number(given) { return typeof given === 'object' ? (this.#handles.get(given.of) ?? 0) : given; }
  #call(number, name, given) {
    if (given.some((a) => typeof a === 'object' && !this.#handles.has(a.of))) return 'left out';
    const numbers = given.map((a) => this.#number(a));
    const gives = functions[name] ?? '';
    const result = this.invoke(name, ...numbers);
    if (gives === 'handle') this.#handles.set(number, result);
    if (gives === 'handle' || gives === 'word') return gives === 'handle' ? 'handle' : result;
    return gives ? this.#read(number, gives, numbers.at(-1)) : null;
  }
  #read(number, gives, at) {
    if (gives === 'bytes' || gives === 'words') {
      const [pointer, count] = this.words(at, 2);
      return gives === 'bytes' ? Buffer.from(this.get(pointer, count)).toString('hex') : this.words(pointer, count);
    }
    if (this.get(at, 1)[0]) return this.#error(this.words(at + 4, 1)[0]);
    if (gives === 'result') {
      this.#handles.set(number, this.words(at + 4, 1)[0]);
      return 'handle';
    }
    if (gives !== 'outputs') return 'text';
    const [pointer, count] = this.words(at + 4, 2);
    return Array.from({ length: count }, (_, i) => this.#output(...this.words(pointer + 12 * i, 3)));
  }
  #output(name, size, tensor) {
    const told = [decoder.decode(this.get(name, size)), this.invoke('tensor-ty', tensor)];
    for (const read of ['tensor-dimensions', 'tensor-data']) {
      this.invoke(read, tensor, RESULT + 32);
      told.push(this.#read(-1, functions[read], RESULT + 32));
    }
    this.invoke('drop-tensor', tensor);
    return told;
  }
  #error(error) {
    const code = this.invoke('error-code', error);
    this.invoke('error-data', error, RESULT + 32);
    const message = decoder.decode(this.get(...this.words(RESULT + 32, 2)));
    this.invoke('drop-error', error);
    return `${CODES[code]}: ${message}`;
  }
}

for (const program of wanted) {
  const nn = open(resolve(library), config);
  const guest = new Guest(await instantiate(compile, new WasiNn(nn, mostBytes).imports()));
  console.log(JSON.stringify(guest.run(program)));
  if (loop) console.log(JSON.stringify({ microseconds: guest.measured(loop) }));
  nn.close();
}
