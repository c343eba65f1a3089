// wasi:nn 0.2 and headrace:nn for components in Node, by the calls that addon.c makes: a buffer of our own stands for
// a guest's memory there. More live resources of one guest, or more bytes of its tensors and errors, are a leak, and end it.
import { DATA, OWN_FROM, ROOM_FOR_DIMENSIONS, SHAPE, TENSOR, WORD, hasOwnBuffer, roomOf } from './buffers.mjs';
import { lower } from './lowered.mjs';
import { GuestFault, Holdings, MOST_BYTES, Resource, known } from './resources.mjs';

const DESCRIPTION = 0xffffffff, TOO_LARGE = 7, INVALID_ENCODING = 2, END_OF_SEQUENCE = 100;
const FIRST_SIZE = 65536;
const ENCODINGS = ['openvino', 'onnx', 'tensorflow', 'pytorch', 'tensorflowlite', 'ggml', 'autodetect'];
const TARGETS = ['cpu', 'gpu', 'tpu'];
const NUMBERS = { FP16: 0, FP32: 1, FP64: 2, BF16: 6, U8: 3, I32: 4, I64: 5 };
const SEEN_AS = { f16: 'FP16', f32: 'FP32', f64: 'FP64', bf16: 'BF16', i32: 'I32', u32: 'I32', i64: 'I64', u64: 'I64',
  u8: 'U8', i8: 'U8', bool: 'U8' };
const WIDTHS = { FP16: 2, FP32: 4, FP64: 8, BF16: 2, U8: 1, I32: 4, I64: 8 };
const CODES = { invalid_argument: 'invalid-argument', invalid_state: 'invalid-argument', invalid_encoding: 'invalid-encoding',
  unsupported: 'unsupported-operation', too_large: 'too-large', not_found: 'not-found', denied: 'security',
  timed_out: 'timeout', prompt_too_long: 'too-large', context_full: 'too-large' };
/** The metadata of an answer that was given up before its first piece. */
const NOTHING_SAID = JSON.stringify({ output_tokens: 0, stop_reason: 'cancelled' });
const encoder = new TextEncoder(), decoder = new TextDecoder();

/** What calls throw; a component gets it as its error. */
class NnError extends Resource {
  constructor(holdings, code, message) { super(holdings, message.length); Object.assign(this, { name: code, message }); }
  code() { return CODES[known(this).name] ?? 'runtime-error'; }
  data() { return known(this).message; }
  [Symbol.dispose]() { this.drop(); }
}

class Tensor extends Resource {
  constructor(holdings, dimensions, type, data) {
    super(holdings, data.length + 4 * dimensions.length);
    this.shape = new Uint32Array(dimensions);
    this.type = type;
    this.bytes = data;
  }
  dimensions() { return known(this).shape; }
  ty() { return known(this).type; }
  data() { return known(this).bytes; }
  [Symbol.dispose]() { this.drop(); }
}

/** A graph's number, which is given back when neither its handle nor a context needs it. */
class Owner {
  #uses = 1;
  constructor(backend, number) { Object.assign(this, { backend, number }); }
  share() { this.#uses++; return this; }
  release() { if (--this.#uses === 0) this.backend.check(this.backend.calls.unload(this.backend.memory, this.number)); }
}

/** The calls of one guest, with the buffer that stands for its memory. */
class Backend {
  constructor(nn, holdings) {
    this.#become(FIRST_SIZE);
    this.calls = nn.imports;
    this.holdings = holdings;
    this.Tensor = class extends Tensor {
      constructor(...parts) { super(holdings, ...parts); }
    };
  }
  error(code, message) { return new NnError(this.holdings, code, message); }
  text(bytes) { return new this.Tensor([bytes.length], 'U8', bytes); }

  #become(size) {
    this.memory = new ArrayBuffer(size);
    this.bytes = new Uint8Array(this.memory);
    this.words = new Uint32Array(this.memory);
  }
  room(size) {
    if (this.memory.byteLength < size) this.#become(Math.ceil(size / 4) * 4 + FIRST_SIZE);
    return this.bytes;
  }
  word() { return this.words[WORD / 4]; }
  check(number) {
    if (number === 0) return;
    const { code, message } = JSON.parse(decoder.decode(this.output(0, 1))).error;
    throw this.error({ [INVALID_ENCODING]: 'invalid_encoding', [TOO_LARGE]: 'too_large' }[number] ?? code, message);
  }
  /** A memory that has these bytes at DATA. */
  #holding(bytes) {
    if (hasOwnBuffer(bytes)) return bytes.buffer;
    if (DATA + bytes.length > this.memory.byteLength) {
      const room = roomOf(bytes.length);
      room.set(bytes);
      return room.buffer;
    }
    this.bytes.set(bytes, DATA);
    return this.memory;
  }
  /** A memory's words before DATA. */
  #words(memory) { return memory === this.memory ? this.words : new Uint32Array(memory, 0, DATA / 4); }
  /** The number that a call on this memory writes. */
  number(memory, name, ...numbers) {
    this.check(this.calls[name](memory, ...numbers, WORD));
    return this.#words(memory)[WORD / 4];
  }
  load(model, encoding, target) {
    const memory = this.#holding(model), words = this.#words(memory), at = TENSOR / 4;
    words[at] = DATA;
    words[at + 1] = model.length;
    return this.number(memory, 'load', TENSOR, 1, encoding, target);
  }
  loadByName(name) {
    const bytes = encoder.encode(name);
    return this.number(this.#holding(bytes), 'load_by_name', DATA, bytes.length);
  }
  open(graph, session) {
    if (session === undefined) return this.number(this.memory, 'init_execution_context', graph);
    const bytes = encoder.encode(session);
    return this.number(this.#holding(bytes), 'init_execution_context_with_session', graph, DATA, bytes.length);
  }
  close(context) { this.check(this.calls.close_execution_context(this.memory, context)); }
  setInput(context, index, type, dimensions, data) {
    if (dimensions.length > ROOM_FOR_DIMENSIONS) // fewer are the library's to refuse
      throw this.error('invalid_argument', `the tensor has ${dimensions.length} dimensions, and 8 are the most`);
    const memory = this.#holding(data), words = this.#words(memory), at = TENSOR / 4;
    words.set(dimensions, SHAPE / 4);
    words[at] = SHAPE;
    words[at + 1] = dimensions.length;
    words[at + 2] = type;
    words[at + 3] = DATA;
    words[at + 4] = data.length;
    this.check(this.calls.set_input(memory, context, index, TENSOR));
  }
  setText(context, index, bytes) { this.setInput(context, index, NUMBERS.U8, [bytes.length], bytes); }
  compute(context) { this.check(this.calls.compute(this.memory, context)); }
  output(context, index, name) {
    const size = this.#read(context, index, name);
    return this.bytes.slice(DATA, DATA + size);
  }
  /** An output of so many bytes. */
  outputOf(context, index, size) {
    if (size < OWN_FROM) return this.output(context, index);
    const room = roomOf(size);
    this.check(this.calls.get_output(room.buffer, context, index, DATA, size, WORD));
    return room;
  }
  /** Has an output at DATA, until the next call; its size. */
  #read(context, index, name = 'get_output') {
    for (;;) {
      const capacity = this.memory.byteLength - DATA;
      const code = this.calls[name](this.memory, context, index, DATA, capacity, WORD);
      if (code === 0) return this.word();
      if (code !== TOO_LARGE || this.word() <= capacity) {
        if (context === 0) throw this.error('backend_failure', `error ${code}`);
        this.check(code);
      }
      this.room(DATA + this.word());
    }
  }
  /** A context's number and description; `talks`: it must be a language model's. */
  opened(graph, session, talks = false) {
    const number = this.open(graph, session);
    try {
      const described = this.description(number);
      if (talks && described.kind !== 'language_model')
        throw this.error('unsupported', 'the graph takes tensors; conversations are with language models');
      return { number, described };
    } catch (error) {
      this.close(number);
      throw error;
    }
  }
  /** Most often it is the same as the last one. */
  description(context) {
    const size = this.#read(context, DESCRIPTION), text = decoder.decode(this.bytes.subarray(DATA, DATA + size));
    if (text !== this.told) Object.assign(this, { told: text, described: JSON.parse(text) });
    return this.described;
  }
  /** Undefined behind the last one. */
  nextPiece(context) {
    const code = this.calls.compute_single(this.memory, context);
    if (code === END_OF_SEQUENCE) return undefined;
    this.check(code);
    return decoder.decode(this.output(context, 0, 'get_output_single'));
  }
  endPieces(context) { this.check(this.calls.fini_single(this.memory, context)); }
}

class Context extends Resource {
  constructor(owner, opened) {
    super(owner.backend.holdings);
    this.owner = owner.share();
    this.backend = owner.backend;
    this.number = opened.number;
    this.described = opened.described;
    this.names = opened.described.inputs?.map(({ name }) => name);
    /** Whether the shapes of outputs are known only when it ran. */
    this.isOpen = opened.described.outputs?.some(({ shape }) => shape.some((extent) => extent < 0));
  }
  compute(inputs) {
    const given = new Map();
    let twice;
    for (const [name, tensor] of inputs) {
      const handed = known(tensor);
      handed.drop();
      if (given.has(name)) twice ??= name;
      given.set(name, handed);
    }
    if (twice !== undefined) throw this.backend.error('invalid_argument', `input '${twice}' is given twice`);
    return known(this).described.kind === 'language_model' ? this.#text(given) : this.#tensors(given);
  }
  #tensors(given) {
    const { names } = this;
    if (given.size !== names.length || !names.every((name) => given.has(name)))
      throw this.backend.error('invalid_argument',
        `the graph's inputs are ${names.join(', ')}; given are ${[...given.keys()].join(', ') || 'none'}`);
    names.forEach((name, index) => {
      const { type, shape, bytes } = given.get(name);
      this.backend.setInput(this.number, index, NUMBERS[type], shape, bytes);
    });
    this.backend.compute(this.number);
    const { outputs } = this.isOpen ? this.backend.description(this.number) : this.described;
    return outputs.map(({ name, type, shape, computed }, index) => {
      const seen = SEEN_AS[type];
      if (!seen) throw this.backend.error('unsupported', `output '${name}' is ${type}, which no tensor-type is`);
      const extents = computed ?? shape, size = extents.reduce((product, extent) => product * extent, WIDTHS[seen]);
      return [name, new this.backend.Tensor(extents.length ? extents : [1], seen,
        this.backend.outputOf(this.number, index, size))];
    });
  }
  #text(given) {
    const known = [...given.keys()].every((name) => name === 'prompt' || name === 'parameters');
    if (!given.has('prompt') || !known)
      throw this.backend.error('invalid_argument',
        `a language model's inputs are prompt, and parameters as JSON; given are ${[...given.keys()].join(', ')}`);
    this.backend.setText(this.number, 0, given.get('prompt').bytes);
    this.backend.setText(this.number, 1, given.get('parameters')?.bytes ?? new Uint8Array());
    this.backend.compute(this.number);
    const text = this.backend.output(this.number, 0), metadata = this.backend.text(this.backend.output(this.number, 1));
    if (!this.described.gives_vectors) return [['text', this.backend.text(text)], ['metadata', metadata]];
    const { embedding } = JSON.parse(decoder.decode(text));
    const dimensions = Array.isArray(embedding[0]) ? [embedding.length, embedding[0].length] : [embedding.length];
    const bytes = new Uint8Array(Float32Array.from(embedding.flat()).buffer);
    return [['embedding', new this.backend.Tensor(dimensions, 'FP32', bytes)], ['metadata', metadata]];
  }
  [Symbol.dispose]() { if (this.drop()) { this.backend.close(this.number); this.owner.release(); } }
}

lower(Tensor, NnError, Context);

class Answer extends Resource {
  constructor(conversation) {
    super(conversation.backend.holdings);
    Object.assign(this, { conversation, hasBegun: false, isOver: false, told: '' });
  }
  get #backend() { return this.conversation.backend; }
  next() {
    if (known(this).isOver) return undefined;
    let piece;
    this.hasBegun = true;
    try {
      piece = this.#backend.nextPiece(this.conversation.number);
    } catch (error) {
      this.isOver = true;
      throw error;
    }
    if (piece === undefined) this.#keepMetadata();
    return piece;
  }
  metadata() {
    if (!known(this).told) throw this.#backend.error('invalid_state', 'the answer is not at its end');
    return this.told;
  }
  cancel() { if (known(this).giveUp()) this.#keepMetadata(); }
  /** Whether there was something to give up. */
  giveUp() {
    if (this.isOver || this.conversation.answer !== this) return false;
    this.isOver = true;
    if (this.hasBegun) this.#backend.endPieces(this.conversation.number);
    return true;
  }
  #keepMetadata() {
    this.isOver = true;
    this.told = this.hasBegun ? decoder.decode(this.#backend.output(this.conversation.number, 1)) : NOTHING_SAID;
  }
  [Symbol.dispose]() { if (this.drop()) this.giveUp(); }
}

class Conversation extends Resource {
  constructor(owner, { number }) {
    super(owner.backend.holdings);
    Object.assign(this, { owner: owner.share(), backend: owner.backend, number });
  }
  static open(graph, session) {
    const { owner } = known(graph);
    return new Conversation(owner, owner.backend.opened(owner.number, session, true));
  }
  ask(prompt, parameters) {
    known(this).answer?.giveUp();
    this.backend.setText(this.number, 0, encoder.encode(prompt));
    this.backend.setText(this.number, 1, encoder.encode(parameters));
    this.answer = new Answer(this);
    return this.answer;
  }
  /** What is left of its answer ends with it: guests may drop the two in either order. */
  [Symbol.dispose]() {
    if (!this.drop()) return;
    this.answer?.giveUp();
    this.backend.close(this.number);
    this.owner.release();
  }
}

class Graph extends Resource {
  constructor(backend, number) { super(backend.holdings); this.owner = new Owner(backend, number); }
  initExecutionContext() {
    const { owner } = known(this);
    return new Context(owner, owner.backend.opened(owner.number));
  }
  [Symbol.dispose]() { if (this.drop()) this.owner.release(); }
}

/** The imports of one guest. */
export class WasiNn {
  #backend;
  /** nn: what the addon opened for the guest; mostBytes: that its tensors may hold. */
  constructor(nn, mostBytes = MOST_BYTES) { this.#backend = new Backend(nn, new Holdings(mostBytes)); }
  /** By interface, as what jco makes wants them. */
  imports() {
    const backend = this.#backend;
    const load = (builders, encoding, target) => {
      if (builders.length !== 1)
        throw backend.error('invalid_argument', `a model is one builder; ${builders.length} were given`);
      return new Graph(backend, backend.load(builders[0], ENCODINGS.indexOf(encoding), TARGETS.indexOf(target)));
    };
    return {
      'wasi:nn/errors': { Error: NnError },
      'wasi:nn/tensor': { Tensor: backend.Tensor },
      'wasi:nn/inference': { GraphExecutionContext: Context },
      'wasi:nn/graph': { Graph, load, loadByName: (name) => new Graph(backend, backend.loadByName(name)) },
      'headrace:nn/conversations': { Conversation, Answer },
    };
  }
}
