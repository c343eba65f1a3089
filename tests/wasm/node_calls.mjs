// The calls of test_codes.py as a core module in Node makes them, the program on standard input:
//   node node_calls.mjs ADDON.node LIBRARY.so CONFIG PAGES
// Prints the numbers that they gave as JSON.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [addon, library, config, pages] = process.argv.slice(2);
const nn = createRequire(import.meta.url)(resolve(addon)).open(resolve(library), config);
const { buffer } = new WebAssembly.Memory({ initial: Number(pages) });
const codes = [];
for (const [name, ...given] of JSON.parse(readFileSync(0, 'utf8'))) {
  if (name === 'put') {
    new Uint8Array(buffer).set(Buffer.from(given[1], 'hex'), given[0]);
    continue;
  }
  const numbers = given.map((number) => (typeof number === 'object' ? new DataView(buffer).getUint32(number.at, true) : number));
  codes.push(nn.imports[name](buffer, ...numbers));
}
nn.close();
console.log(JSON.stringify(codes));
