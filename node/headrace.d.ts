// Models and language models as `headrace` has them.

/** A refusal or failure; wrong calls are TypeErrors and RangeErrors. */
export class HeadraceError extends Error {
  constructor(code: ErrorCode, message: string);
  readonly code: ErrorCode;
}
export type ErrorCode =
  | 'backend_failure'
  | 'busy'
  | 'cancelled'
  | 'context_full'
  | 'denied'
  | 'invalid_argument'
  | 'invalid_state'
  | 'io'
  | 'not_found'
  | 'out_of_memory'
  | 'prompt_too_long'
  | 'timed_out'
  | 'unsupported';

export interface Device {
  /** What `device` takes: "CPU", "CUDA0". */
  name: string;
  description: string;
  type: 'accel' | 'cpu' | 'gpu' | 'igpu' | 'rpc';
  /** Bytes. */
  memoryFree: number;
  memoryTotal: number;
}
export function devices(): Promise<Device[]>;

/** The typed array that holds a type. float16: Float16Array where JavaScript has it, else the bits. */
export interface TensorArrays {
  float32: Float32Array;
  float16: Uint16Array | Float16ArrayIfThere;
  /** The bits; inputs and outputs of ONNX models that are bfloat16 are float32 here. */
  bfloat16: Uint16Array;
  float64: Float64Array;
  int8: Int8Array;
  uint8: Uint8Array;
  int16: Int16Array;
  uint16: Uint16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
  /** Two elements a byte, the low nibble first. */
  int4: Uint8Array;
  uint4: Uint8Array;
  bool: Uint8Array;
}
type Float16ArrayIfThere = typeof globalThis extends { Float16Array: { prototype: infer T } } ? T : never;
export type TensorType = keyof TensorArrays;
export type TensorData = TensorArrays[TensorType] | Uint8ClampedArray;

export interface TensorInfo {
  readonly name: string;
  readonly type: TensorType;
  /** Numbers, and names of extents that a run decides. */
  readonly shape: readonly (number | string)[];
}
export interface TypedTensor<T extends TensorType> {
  readonly type: T;
  readonly dims: readonly number[];
  readonly data: TensorArrays[T];
}
/** A tensor of any type: `if (y.type === 'float32')` makes `y.data` a Float32Array. */
export type Tensor = { [T in TensorType]: TypedTensor<T> }[TensorType];
/** A typed array alone has the input's shape, which must be fixed then. */
export type TensorLike = TensorData | { data: TensorData; dims: ArrayLike<number>; type?: TensorType };

export interface LoadOptions {
  /** A name of devices(), or "rpc://host:port"; otherwise the best GPU, or else the CPU. */
  device?: string;
  accelerated?: boolean;
  deviceType?: 'auto' | 'cpu' | 'gpu' | 'npu';
  powerPreference?: 'default' | 'high-performance' | 'low-power';
  /** Milliseconds of silence after which a remote host is lost. */
  hostTimeout?: number;
  /** 0: all. */
  threads?: number;
  /** How constant matrices of products are stored; with a format, products round their other operand, too. */
  weights?: 'as-given' | 'q8_0' | 'q4_0';
  /** false: quantised products multiply in float32. */
  roundActivations?: boolean;
  /** "low": without transformed filters. */
  memory?: 'normal' | 'low';
  /** "fast": products of float32 are rounded where that is faster. */
  precision?: 'exact' | 'fast';
  /** Where packed weights are kept for later starts: "on", a folder or "off". */
  packedCache?: string;
  /** Where the choices of `headrace bench --tune` are: "on", a folder or "off". */
  tuning?: string;
  /** What plans for other input shapes than the latest may take. */
  cacheBytes?: number;
  /** The most iterations of all loops of a run together. */
  mostIterations?: number;
  /** For ONNX models: numbers for named dimensions, or whole shapes of inputs, where names stay open. */
  dimensions?: Record<string, number | (number | string)[]>;
}

/**
 * A model file: .onnx, .hrg, .webnn or .json by a path or file: URL, or the bytes of an ONNX model or a .hrg file,
 * which are copied: those of more than 1 MiB have to stay as they are until the promise is settled.
 * A file must not be shortened while the model is there.
 */
export function load(
  source: string | URL | Uint8Array | ArrayBufferLike,
  options?: LoadOptions,
): Promise<Model>;

export interface RunOptions {
  /** Rejects the run with its reason, and ends it between two nodes; in a page it goes on to its end unheard. */
  signal?: AbortSignal;
}

export class Model {
  private constructor();
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** What was taken: "cpu" or a device's name. */
  readonly device: string;
  /**
   * Inputs are copied; runs may go on at once, and those of a model with states take turns. Who knows the types of
   * the outputs may say them: run<{ y: TypedTensor<'float32'> }>(inputs); they are not checked.
   */
  run<Outputs extends { [name in keyof Outputs]: Tensor } = Record<string, Tensor>>(
    inputs: Record<string, TensorLike>,
    options?: RunOptions,
  ): Promise<Outputs>;
  /** Writes a graph file; the extension chooses the form: .hrg, .webnn or .json. A page has no files. */
  save(path: string | URL): Promise<void>;
  /** Frees the model once the runs that go on have ended. */
  dispose(): void;
}

export interface Encoded {
  ids: Int32Array;
  /** Which text each token belongs to. */
  types: Int32Array;
}
export interface EncodeOptions<T extends string | readonly string[]> {
  /** Texts that the model compares the others with. */
  pair?: T;
  /** Special ones included; 0: as many as the file says. */
  mostTokens?: number;
  /** With the tokens that the file puts around texts. */
  special?: boolean;
}

/** Texts as numbers of tokens, by the file tokenizer.json of a model of Hugging Face's. */
export class Tokenizer {
  private constructor();
  static load(path: string | URL): Promise<Tokenizer>;
  /** One more than the largest token. */
  readonly size: number;
  readonly paddingId: number;
  /** That the file cuts texts to; 0: none. */
  readonly mostTokens: number;
  encode(text: string, options?: EncodeOptions<string>): Promise<Encoded>;
  encode(texts: readonly string[], options?: EncodeOptions<readonly string[]>): Promise<Encoded[]>;
}

export type ParameterValue = boolean | number | string | null | undefined | ParameterValue[] | Parameters;
/** docs/parameters.md has all of them. */
export interface Parameters {
  [name: string]: ParameterValue;
}
export interface RequestOptions {
  parameters?: Parameters;
  signal?: AbortSignal;
}
export interface ToolCall {
  name: string;
  /** A JSON object as text. */
  arguments: string;
  id?: string;
}
export interface Message {
  role: 'assistant' | 'system' | 'tool' | 'user';
  /** A list: texts that the chat template may keep apart. */
  content: string | string[];
  reasoning?: string;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  toolName?: string;
}
/** A text, messages of which the last is answered, or tokens to go on with. */
export type Prompt = string | readonly Message[] | Int32Array;

export interface ParameterWarning {
  parameter: string;
  message: string;
}
export interface TokenProbability {
  token: number;
  text: string;
  probability: number;
}
export interface Reply {
  /** As the model wrote it. */
  text: string;
  /** Without reasoning and tool calls. */
  content: string;
  reasoning: string;
  toolCalls: Required<ToolCall>[];
  stopReason: string;
  stopDetail: string;
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
  reasoningTokens: number;
  tokens: Int32Array;
  /** The probabilities for each token, with the parameter n_probs. */
  probabilities: TokenProbability[][];
  draftedTokens: number;
  acceptedTokens: number;
  contextShifts: number;
  droppedMessages: number;
  timings: {
    queuedMs: number;
    promptMs: number;
    generateMs: number;
    promptPerSecond: number;
    generatedPerSecond: number;
  };
  warnings: ParameterWarning[];
  model: string;
}

/** An answer that is being written. One whose reader leaves the loop is cancelled. */
export class Generation implements AsyncIterableIterator<string> {
  private constructor();
  /** More of the text, whole characters. */
  next(): Promise<IteratorResult<string, undefined>>;
  return(value?: undefined): Promise<IteratorResult<string, undefined>>;
  [Symbol.asyncIterator](): this;
  /** The whole answer, whatever was read of it. */
  reply(): Promise<Reply>;
  /** Ends the answer within a step; the reply then is what was written until then. */
  cancel(): void;
}

export class Conversation {
  private constructor();
  /** After what was said before. Refused as busy while an answer is read piece by piece. */
  say(message: string, options?: RequestOptions): Promise<Reply>;
  stream(message: string, options?: RequestOptions): Generation;
  messages(): Promise<Message[]>;
}

export interface ModelInformation {
  path: string;
  description: string;
  chatTemplate: string;
  beginOfText: string;
  endOfText: string;
  vocabulary: string;
  vocabularySize: number;
  trainingContext: number;
  embeddingSize: number;
  parameters: number;
  bytes: number;
  contextTokens: number;
  requestTokens: number;
  parallel: number;
  deviceBytes: number;
  /** The file's, under its names; lists are null. */
  metadata: Record<string, boolean | number | string | null>;
}
export interface Statistics {
  submitted: number;
  finished: number;
  failed: number;
  cancelled: number;
  rejected: number;
  waiting: number;
  running: number;
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
  draftedTokens: number;
  acceptedTokens: number;
  promptMs: number;
  decodeMs: number;
  steps: number;
  threads: number;
  weightBytes: number;
  contextTokens: number;
  rememberedTokens: number;
  /** Tokens of prompts that came from the folder `cache_dir`. */
  diskCachedTokens: number;
  diskWrittenTokens: number;
  diskFailures: number;
  diskCacheBytes: number;
  namedSessions: number;
  anonymousSessions: number;
}

/** A GGUF language model; requests that run at once share batches. */
export class LanguageModel {
  private constructor();
  /** path: of a GGUF file, or its first part. */
  static load(path: string | URL, options?: { parameters?: Parameters }): Promise<LanguageModel>;
  readonly kind: 'scores' | 'text' | 'token_vectors' | 'vectors';
  /** Parameters of the load that were not taken as they are. */
  readonly warnings: readonly ParameterWarning[];
  generate(prompt: Prompt, options?: RequestOptions): Promise<Reply>;
  stream(prompt: Prompt, options?: RequestOptions): Generation;
  /** The conversation of that name, new or known; without a name a new one. */
  conversation(options?: { name?: string; parameters?: Parameters }): Promise<Conversation>;
  /** By a model that is made for it or was loaded with {embeddings: true}. */
  embed(text: string, options?: RequestOptions): Promise<Float32Array>;
  embed(texts: readonly string[], options?: RequestOptions): Promise<Float32Array[]>;
  /** By a model whose `pooling` is "none". */
  embedTokens(text: string, options?: RequestOptions): Promise<Float32Array[]>;
  /** By a model whose `pooling` is "rank". */
  rerank(query: string, documents: readonly string[], options?: RequestOptions): Promise<Float32Array>;
  tokenize(text: string, options?: { special?: boolean; control?: boolean }): Promise<Int32Array>;
  detokenize(tokens: Int32Array | readonly number[]): Promise<string>;
  information(): Promise<ModelInformation>;
  statistics(): Promise<Statistics>;
  /** Rejects all that goes on with the code "cancelled", half-written answers as well, and frees the model. */
  dispose(): Promise<void>;
}
