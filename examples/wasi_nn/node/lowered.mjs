// What components call most, tensors, errors and compute, by the numbers that the canonical ABI passes: jco calls a
// function of ours that has the symbol cabiLower without code of its own between. Handles are in jco's tables, arrays of
// two numbers each, which begin at 2: the first is for free places a link, the second the resource's number.
import { copyOf } from './buffers.mjs';
import { GuestFault, Resource } from './resources.mjs';

const LOWER = Symbol.for('cabiLower');
/** In the first number: the place is free; in the second one: the handle owns what it stands for. */
const FLAG = 2 ** 30;
const TYPES = ['FP16', 'FP32', 'FP64', 'BF16', 'U8', 'I32', 'I64'];
const CODES = ['invalid-argument', 'invalid-encoding', 'timeout', 'runtime-error', 'unsupported-operation', 'too-large',
  'not-found', 'security', 'unknown'];
const encoder = new TextEncoder(), decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** By a table: the class of its handles. */
const classes = new WeakMap();

/** What a handle stands for, of `kind`. */
function seen(table, handle, kind) {
  const at = 2 * handle;
  if (handle > 0 && at < table.length && (table[at] & FLAG) === 0) {
    const found = Resource.ofRep(table[at + 1] & ~FLAG);
    if (found instanceof kind) return found;
  }
  throw new GuestFault('the guest passed a handle of nothing, or one that it had dropped');
}

/** The same, and the handle is no more. */
function taken(table, handle, kind) {
  const found = seen(table, handle, kind), at = 2 * handle;
  if ((table[at + 1] & FLAG) === 0 || table[at] !== 0) throw new GuestFault('the guest gave away what it does not own');
  table[at] = table[0] | FLAG;
  table[0] = handle | FLAG;
  return found;
}

/** A handle that owns it. */
function given(table, resource) {
  const free = table[0] & ~FLAG, owned = resource.rep | FLAG;
  if (free === 0) return table.push(0, owned) / 2 - 1;
  table[0] = table[2 * free];
  table[2 * free] = 0;
  table[2 * free + 1] = owned;
  return free;
}

/** A component's memory, which may grow at each call of it; a function that passes numbers alone has none. */
class Memory {
  #memory;
  #realloc;
  #bytes;
  #view;
  constructor({ memory, realloc }) {
    this.#memory = memory;
    this.#realloc = realloc;
  }
  #look() {
    const { buffer } = this.#memory;
    if (buffer === this.#view?.buffer) return;
    this.#bytes = new Uint8Array(buffer);
    this.#view = new DataView(buffer);
  }
  /** A pointer to that many bytes, when they are in the memory. */
  #at(pointer, size, alignment) {
    const at = pointer >>> 0;
    this.#look();
    if (at % alignment !== 0 || at + size > this.#bytes.length)
      throw new GuestFault(`the guest passed ${size} bytes at ${at}, and has ${this.#bytes.length}`);
    return at;
  }
  /** A copy. */
  read(pointer, size) {
    const at = this.#at(pointer, size, 1);
    return copyOf(this.#bytes, at, size);
  }
  readWords(pointer, count) {
    const at = this.#at(pointer, 4 * count, 4), words = new Uint32Array(count);
    for (let i = 0; i < count; ++i) words[i] = this.#view.getUint32(at + 4 * i, true);
    return words;
  }
  text(pointer, size) {
    const at = this.#at(pointer, size, 1);
    try {
      return decoder.decode(this.#bytes.subarray(at, at + size));
    } catch {
      throw new GuestFault('the guest passed a text that is no UTF-8');
    }
  }
  write(pointer, first, second) {
    const at = this.#at(pointer, 8, 4);
    this.#view.setUint32(at, first, true);
    this.#view.setUint32(at + 4, second, true);
  }
  writeWord(pointer, word) { this.#view.setUint32(this.#at(pointer, 4, 4), word, true); }
  writeByte(pointer, byte) { this.#bytes[this.#at(pointer, 1, 1)] = byte; }
  /** Room that the guest gives. */
  room(size, alignment) { return this.#at(this.#realloc(0, 0, alignment, size), size, alignment); }
  /** Copies bytes, or words, to where the guest wants them; pointer and length go to `result`. */
  give(result, list) {
    const { buffer, byteOffset, byteLength, BYTES_PER_ELEMENT: size } = list, at = this.room(byteLength, size);
    this.#bytes.set(size === 1 ? list : new Uint8Array(buffer, byteOffset, byteLength), at);
    this.write(result, at, list.length);
  }
}

/** The constructor of tensors. */
function newTensor(Tensor, { resourceTables: [tensors], ...guest }) {
  const memory = new Memory(guest);
  classes.set(tensors, 'tensor');
  return (shape, rank, type, data, size) => {
    if (!(type in TYPES)) throw new GuestFault(`the guest passed ${type}, which no tensor-type is`);
    return given(tensors, new Tensor(memory.readWords(shape, rank >>> 0), TYPES[type], memory.read(data, size >>> 0)));
  };
}

/** Has jco call a method without parameters by numbers; `lower` makes them of what it gives. */
function lowerGetter(kind, Class, name, lower) {
  const method = Class.prototype[name];
  method[LOWER] = ({ resourceTables: [table], ...guest }) => {
    const memory = new Memory(guest);
    classes.set(table, kind);
    return (handle, result) => lower(method.call(seen(table, handle, Class)), memory, result);
  };
}
const giveList = (list, memory, result) => memory.give(result, list);

/** compute's tables. A context's is where the handle is; what else a component calls told the two others. */
function tablesOf(tables, handle, Context) {
  const contexts = tables.find((table) => Resource.ofRep(table[2 * handle + 1] & ~FLAG) instanceof Context);
  const others = tables.filter((table) => table !== contexts);
  const isOf = (kind) => (table) => classes.get(table) === kind;
  const tensors = others.find(isOf('tensor')) ?? others.find((table) => !isOf('error')(table));
  return { contexts: contexts ?? tables[0], tensors, errors: others.find((table) => table !== tensors) };
}

function lowerCompute(Tensor, NnError, Context) {
  const { compute } = Context.prototype;
  compute[LOWER] = ({ resourceTables, ...guest }) => {
    const memory = new Memory(guest);
    let tables;
    const read = (inputs, count) => {
      const words = memory.readWords(inputs, 3 * count), list = [];
      for (let i = 0; i < words.length; i += 3)
        list.push([memory.text(words[i], words[i + 1]), taken(tables.tensors, words[i + 2], Tensor)]);
      return list;
    };
    const write = (outputs, result) => {
      const at = memory.room(12 * outputs.length, 4);
      outputs.forEach(([name, tensor], i) => {
        memory.give(at + 12 * i, encoder.encode(name));
        memory.writeWord(at + 12 * i + 8, given(tables.tensors, tensor));
      });
      memory.writeByte(result, 0);
      memory.write(result + 4, at, outputs.length);
    };
    return (handle, inputs, count, result) => {
      tables ??= tablesOf(resourceTables, handle, Context);
      const context = seen(tables.contexts, handle, Context);
      let outputs;
      try {
        outputs = compute.call(context, read(inputs, count >>> 0));
      } catch (error) {
        if (!(error instanceof NnError)) throw error;
        memory.writeByte(result, 1);
        memory.writeWord(result + 4, given(tables.errors, error));
        return;
      }
      write(outputs, result);
    };
  };
}

/** Has jco call these classes by numbers, where what it makes has hybrid bindings of imports. */
export function lower(Tensor, NnError, Context) {
  Tensor[LOWER] = function (guest) { return newTensor(this, guest); }; // a guest's own class, derived from it
  lowerGetter('tensor', Tensor, 'dimensions', giveList);
  lowerGetter('tensor', Tensor, 'ty', (type) => TYPES.indexOf(type));
  lowerGetter('tensor', Tensor, 'data', giveList);
  lowerGetter('error', NnError, 'code', (code) => CODES.indexOf(code));
  lowerGetter('error', NnError, 'data', (text, memory, result) => memory.give(result, encoder.encode(text)));
  lowerCompute(Tensor, NnError, Context);
}
