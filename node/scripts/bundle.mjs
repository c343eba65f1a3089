// Writes dist/webnn.cjs: the ES modules that lib/node/webnn.js imports, in one CommonJS module. It understands
// what they use, `import { a, b } from './file.js'` and `export` before a declaration, and refuses the rest.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const importing = /^import \{([^}]*)\} from '(\.[^']*)';\n/gm;
const exporting = /^export (?:(?:class|function|const) (\w+)|const \{([^}]*)\} =)/gm;
const names = (list) =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

const modules = new Map(); // path -> {text, exported}, those that are imported first

function add(path) {
  if (modules.has(path)) return;
  const source = readFileSync(path, 'utf8');
  for (const [, , from] of source.matchAll(importing)) add(resolve(dirname(path), from));
  const exported = [...source.matchAll(exporting)].flatMap(([, one, several]) =>
    one ? [one] : names(several),
  );
  const text = source.replace(importing, '').replace(/^export /gm, '');
  if (/^import\b|\bimport\(|^export\b/m.test(text))
    throw new Error(`${path}: an import or export of another form`);
  modules.set(path, { source, text, exported });
}

function check(path, { source }) {
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

const entry = resolve(root, 'lib/node/webnn.js');
add(entry);
const parts = [...modules].map(([path, module]) => {
  check(path, module);
  return wrapped(path, module);
});
mkdirSync(resolve(root, 'dist'), { recursive: true });
const head = "'use strict';\n// Written by scripts/bundle.mjs.\nconst modules = {};\n";
const foot = `module.exports = modules['${relative(root, entry)}'];\n`;
writeFileSync(resolve(root, 'dist/webnn.cjs'), head + parts.join('') + foot);
