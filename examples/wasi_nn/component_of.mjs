// Makes a component of a core module that a C compiler made, with npm's @bytecodealliance/jco:
//     node component_of.mjs MODULE.wasm COMPONENT.wasm
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.JCO_FOLDER ?? process.cwd(), "package.json"));
const tools = packages.resolve("@bytecodealliance/jco-transpile/wasm-tools");
const { componentEmbed, componentNew } = await import(pathToFileURL(tools));
const adapter = join(dirname(packages.resolve("@bytecodealliance/jco")), "../lib/wasi_snapshot_preview1.command.wasm");

const [module, component] = process.argv.slice(2);
const witSource = await readFile(join(dirname(fileURLToPath(import.meta.url)), "guest.wit"), "utf8");
const embedded = await componentEmbed({ binary: await readFile(module), witSource, world: "command" });
await writeFile(component, await componentNew(embedded, [["wasi_snapshot_preview1", await readFile(adapter)]]));
