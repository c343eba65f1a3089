// Writes dist/NAME.cjs for each entry: lib/node's module and those that it imports, in one CommonJS module. It
// understands what they use, `import { a, b } from './file.js'`, `export` before a declaration and
// `export { a, b };`, and refuses the rest. The types beside it, dist/NAME.d.cts, are those of the ES module but its
// default, which is what require() gives.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const entries = ['headrace', 'webnn', 'onnxruntime-node'];
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const importing = /^import \{([^}]*)\} from '(\.[^']*)';\n/gm;
const exporting = /^export (?:(?:class|(?:async )?function|const) (\w+)|(?:const )?\{([^}]*)\})/gm;
const listed = /^export \{[^}]*\};\n/gm;
const ofModuleAlone = /^\/\/ Only the ES module has a default export\.\n[^]*/m;
const names = (list) =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** Path -> {source, text, exported}, those that are imported first. */
function add(path, modules) {
  if (modules.has(path)) return;
  const source = readFileSync(path, 'utf8');
  for (const [, , from] of source.matchAll(importing)) add(resolve(dirname(path), from), modules);
  const exported = [...source.matchAll(exporting)].flatMap(([, one, several]) =>
    one ? [one] : names(several),
  );
  const text = source
    .replace(importing, '')
    .replace(listed, '')
    .replace(/^export /gm, '');
  if (/^import\b|\bimport\(|^export\b/m.test(text))
    throw new Error(`${path}: an import or export of another form`);
  modules.set(path, { source, text, exported });
}

function check(path, { source }, modules) {
  for (const [, list, from] of source.matchAll(importing)) {
    const { exported } = modules.get(resolve(dirname(path), from));
    const missing = names(list).filter((name) => !exported.includes(name));
    if (missing.length > 0) throw new Error(`${path}: ${from} does not export ${missing.join(', ')}`);
  }
}

/** A function of its own for each module keeps what it does not export to itself. */
function wrapped(path, { source, text, exported }) {
  const imports = [...source.matchAll(importing)].map(
    ([, list, from]) =>
      `const { ${names(list).join(', ')} } = modules['${relative(root, resolve(dirname(path), from))}'];\n`,
  );
  return `modules['${relative(root, path)}'] = (() => {\n${imports.join('')}${text}return { ${exported.join(', ')} };\n})();\n`;
}

/** The types of the CommonJS module. */
function typesOf(name) {
  const types = readFileSync(resolve(root, `${name}.d.ts`), 'utf8');
  return types.replace(ofModuleAlone, '').replaceAll("'./webnn.js'", "'./webnn.cjs'");
}

mkdirSync(resolve(root, 'dist'), { recursive: true });
for (const name of entries) {
  const entry = resolve(root, `lib/node/${name}.js`);
  const modules = new Map();
  add(entry, modules);
  const parts = [...modules].map(([path, module]) => {
    check(path, module, modules);
    return wrapped(path, module);
  });
  const head = "'use strict';\n// Written by scripts/bundle.mjs.\nconst modules = {};\n";
  const foot = `module.exports = modules['${relative(root, entry)}'];\n`;
  writeFileSync(resolve(root, `dist/${name}.cjs`), head + parts.join('') + foot);
  writeFileSync(resolve(root, `dist/${name}.d.cts`), typesOf(name));
}
writeFileSync(resolve(root, 'dist/webnn-extensions.d.cts'), typesOf('webnn-extensions'));
