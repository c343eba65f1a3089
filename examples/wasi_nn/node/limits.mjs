// What a guest gets of Node's memory and time. A guest may be inside a call that nothing interrupts, a computation or a
// wait: one with a limit of time runs in a process of its own, which is ended.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import v8 from 'node:v8';

const PAGE = 65536, ELEMENT = 8, TABLES_PART = 8;
const CORE_MODULE = 1, NESTED = 4, TABLES = 4, MEMORIES = 5;

/** An unsigned LEB128 number, and what is behind it. */
function numberAt(bytes, at) {
  for (let value = 0, factor = 1; ; factor *= 128) {
    const byte = bytes[at++];
    if (byte === undefined) throw new Error('the binary ends within a number');
    value += (byte & 127) * factor;
    if (byte < 128) return [value, at];
  }
}

/** The least and the most elements of each table. One with a first value is refused. */
function tablesOf(section) {
  let [count, at] = numberAt(section, 0);
  const found = [];
  for (; count > 0; --count) {
    if (section[at] === 0x40) throw new Error('a table with a first value of its own is not read');
    const isOfType = section[at] === 0x63 || section[at] === 0x64; // its elements; else that is all
    at = isOfType ? numberAt(section, at + 1)[1] : at + 1;
    let flags, least, most = Infinity;
    [flags, at] = numberAt(section, at);
    [least, at] = numberAt(section, at);
    if (flags & 1) [most, at] = numberAt(section, at);
    found.push({ least, most });
  }
  return found;
}

/** How many memories, and which tables, a core module, or all that a component has, defines. */
function definitions(bytes) {
  const found = { memories: 0, tables: [] }, isComponent = bytes[4] === 13;
  for (let at = 8; at < bytes.length;) {
    const kind = bytes[at], [size, start] = numberAt(bytes, at + 1);
    const section = bytes.subarray(start, start + size);
    if (isComponent && (kind === CORE_MODULE || kind === NESTED)) {
      const { memories, tables } = definitions(section);
      found.memories += memories;
      found.tables.push(...tables);
    } else if (!isComponent && kind === MEMORIES) found.memories += numberAt(section, 0)[0];
    else if (!isComponent && kind === TABLES) found.tables.push(...tablesOf(section));
    at = start + size;
  }
  return found;
}

/** Bounds all memories and tables of a guest together, of what is instantiated from now on. V8 has a limit for each, and
 * so each memory gets the same part; tables get what they begin with, and may grow within their part. */
export function boundMemory(mostBytes, guest) {
  const { memories, tables } = definitions(guest);
  const least = Math.max(0, ...tables.map((table) => table.least));
  const most = Math.max(least, ...tables.map((table) => table.most));
  const part = Math.floor(mostBytes / TABLES_PART / ELEMENT / Math.max(tables.length, 1));
  const elements = Math.max(least, Math.min(most, part));
  const ofTables = tables.length * elements * ELEMENT, ofMemories = mostBytes - ofTables;
  if (ofMemories < 0)
    throw new Error(`its ${tables.length} tables of up to ${elements} elements need ${ofTables} bytes of memory, and \
--max-memory is ${mostBytes}`);
  v8.setFlagsFromString(`--wasm-max-mem-pages=${Math.floor(ofMemories / PAGE / Math.max(memories, 1))}`);
  if (tables.length) v8.setFlagsFromString(`--wasm-max-table-size=${elements}`);
}

/** WebAssembly.instantiate for the core modules of a guest with a limit: what is counted above is there once. */
export function instantiateOnce() {
  const known = new WeakSet();
  return (module, imports) => {
    if (known.has(module))
      throw new Error('the guest instantiates a core module again, for which --max-memory leaves no room');
    known.add(module);
    return WebAssembly.instantiate(module, imports);
  };
}

/** Whether this is the process that runs the guest. Else one is made of the same command line, which is ended when the
 * guest's time is over, and this one has its exit status. */
export async function runsHere({ maxTime, endedBy }, host) {
  if (maxTime === undefined || endedBy === process.ppid) return true;
  const folder = mkdtempSync(join(tmpdir(), 'headrace-guest-')); // of what an ended process leaves
  const [script, ...given] = process.argv.slice(1);
  const child = spawn(process.execPath, [...process.execArgv, script, '--ended-by', process.pid, ...given],
    { stdio: ['inherit', 'inherit', 'inherit', 'ipc'], env: { ...process.env, TMPDIR: folder } });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  let isOver = false;
  child.once('message', () => {
    setTimeout(() => { isOver = child.kill('SIGKILL'); }, maxTime * 1000).unref();
  });
  const [code, signal] = await new Promise((done) => child.once('exit', (...how) => done(how)));
  rmSync(folder, { recursive: true, force: true });
  if (isOver) console.error(`${host}: the guest ran longer than ${maxTime} seconds, its --max-time, and was ended`);
  else if (signal) console.error(`${host}: the guest's process was ended by ${signal}`);
  process.exitCode = code ?? 1;
  return false;
}

/** Says that the guest starts: its time begins. */
export async function startClock() {
  if (!process.send) return;
  await new Promise((done) => process.send('starts', done));
  process.disconnect();
}
