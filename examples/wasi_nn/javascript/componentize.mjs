// Makes a component of a script, with npm's @bytecodealliance/componentize-js:
//     node componentize.mjs SCRIPT.js COMPONENT.wasm
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.JCO_FOLDER ?? process.cwd(), "package.json"));
const main = join(packages.resolve.paths("x")[0], "@bytecodealliance/componentize-js/src/componentize.js");
const { componentize } = await import(pathToFileURL(main));
// It reads the interfaces through WASI, to which versions of the shim from 0.26 on give no folder by themselves.
const shim = createRequire(main).resolve("@bytecodealliance/preview2-shim/filesystem");
const { preopens, _addPreopen } = await import(pathToFileURL(shim));
if (preopens.getDirectories().length === 0) _addPreopen("/", "/");

const [script, made] = process.argv.slice(2);
const wit = join(dirname(fileURLToPath(import.meta.url)), "../guest.wit");
const { component } = await componentize({
  sourcePath: script,
  witPath: wit,
  worldName: "script",
  disableFeatures: ["http", "fetch-event", "clocks", "random"],
});
await writeFile(made, component);
