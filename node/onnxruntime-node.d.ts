// onnxruntime-node's API as `headrace/onnxruntime-node` has it: tensors that lie with the CPU.

export namespace Tensor {
  interface DataTypeMap {
    float32: Float32Array;
    /** Or a Float16Array where JavaScript has it. */
    float16: Uint16Array;
    float64: Float64Array;
    int8: Int8Array;
    uint8: Uint8Array;
    int16: Int16Array;
    uint16: Uint16Array;
    int32: Int32Array;
    uint32: Uint32Array;
    int64: BigInt64Array;
    uint64: BigUint64Array;
    bool: Uint8Array;
    int4: Int8Array;
    uint4: Uint8Array;
    string: string[];
  }
  interface ElementTypeMap {
    float32: number;
    float16: number;
    float64: number;
    int8: number;
    uint8: number;
    int16: number;
    uint16: number;
    int32: number;
    uint32: number;
    int64: bigint;
    uint64: bigint;
    bool: boolean;
    int4: number;
    uint4: number;
    string: string;
  }
  type Type = keyof DataTypeMap;
  type DataType = DataTypeMap[Type];
  type ElementType = ElementTypeMap[Type];
  type CpuPinnedDataTypes = Exclude<Type, 'string'>;
  type TextureDataTypes = 'float32';
  type GpuBufferDataTypes = 'float32' | 'float16' | 'int32' | 'int64' | 'uint32' | 'uint8' | 'bool';
  type MLTensorDataTypes = Exclude<Type, 'string' | 'float64' | 'int16' | 'uint16'>;
  /** Here "cpu", "cpu-pinned", and "none" of one that is disposed of. */
  type DataLocation = 'none' | 'cpu' | 'cpu-pinned' | 'texture' | 'gpu-buffer' | 'ml-tensor';
}

export interface Tensor {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
  readonly size: number;
  readonly data: Tensor.DataType;
  readonly location: Tensor.DataLocation;
  getData(releaseData?: boolean): Promise<Tensor.DataType>;
  reshape(dims: readonly number[]): Tensor;
  dispose(): void;
  /** These are of pages and GPUs, and throw here. */
  readonly texture: never;
  readonly gpuBuffer: never;
  readonly mlTensor: never;
  toDataURL(options?: object): never;
  toImageData(options?: object): never;
}
export interface TypedTensor<T extends Tensor.Type> extends Tensor {
  readonly type: T;
  readonly data: Tensor.DataTypeMap[T];
  getData(releaseData?: boolean): Promise<Tensor.DataTypeMap[T]>;
  reshape(dims: readonly number[]): TypedTensor<T>;
}
export interface TensorConstructor {
  new <T extends Tensor.Type>(
    type: T,
    data: Tensor.DataType | readonly number[] | readonly bigint[] | readonly boolean[] | readonly string[],
    dims?: readonly number[],
  ): TypedTensor<T>;
  new (type: 'uint8', data: Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Float32Array, dims?: readonly number[]): TypedTensor<'float32'>;
  new (data: Float64Array, dims?: readonly number[]): TypedTensor<'float64'>;
  new (data: Int8Array, dims?: readonly number[]): TypedTensor<'int8'>;
  new (data: Uint8Array | Uint8ClampedArray, dims?: readonly number[]): TypedTensor<'uint8'>;
  new (data: Int16Array, dims?: readonly number[]): TypedTensor<'int16'>;
  new (data: Uint16Array, dims?: readonly number[]): TypedTensor<'uint16'>;
  new (data: Int32Array, dims?: readonly number[]): TypedTensor<'int32'>;
  new (data: Uint32Array, dims?: readonly number[]): TypedTensor<'uint32'>;
  new (data: BigInt64Array, dims?: readonly number[]): TypedTensor<'int64'>;
  new (data: BigUint64Array, dims?: readonly number[]): TypedTensor<'uint64'>;
  new (data: readonly string[], dims?: readonly number[]): TypedTensor<'string'>;
  new (data: readonly boolean[], dims?: readonly number[]): TypedTensor<'bool'>;
  new (data: Tensor.DataType, dims?: readonly number[]): Tensor;
  new <T extends Tensor.CpuPinnedDataTypes>(pinned: CpuPinnedConstructorParameters<T>): TypedTensor<T>;
  fromPinnedBuffer<T extends Tensor.CpuPinnedDataTypes>(
    type: T,
    buffer: Tensor.DataTypeMap[T],
    dims?: readonly number[],
  ): TypedTensor<T>;
  /** These are of pages and GPUs: the first rejects here, the others throw. */
  fromImage(image: unknown, options?: object): Promise<never>;
  fromTexture(texture: unknown, options: object): never;
  fromGpuBuffer(buffer: unknown, options: object): never;
  fromMLTensor(tensor: unknown, options: object): never;
}
export interface CpuPinnedConstructorParameters<
  T extends Tensor.CpuPinnedDataTypes = Tensor.CpuPinnedDataTypes,
> {
  readonly location: 'cpu-pinned';
  readonly type: T;
  readonly data: Tensor.DataTypeMap[T];
  readonly dims: readonly number[];
}
export const Tensor: TensorConstructor;
/** Sequences and maps are not read. */
export type NonTensorType = never;
/** What models take and give. */
export type OnnxValue = Tensor | NonTensorType;
export type OnnxValueDataLocation = Tensor.DataLocation;

export type FileUrlOrPath = string;
export type FileBlob = Blob;
export type FileData = Uint8Array | ArrayBufferLike;
export type FileType = FileUrlOrPath | FileBlob | FileData;
export interface ExternalDataFileDescription {
  data: FileType;
  path: string;
}
export type ExternalDataFileType = ExternalDataFileDescription | FileUrlOrPath;
export interface OnnxModelOptions {
  /** Paths of files beside the model, which are found anyway; data in memory are refused. */
  externalData?: readonly ExternalDataFileType[];
}

export namespace InferenceSession {
  interface ExecutionProviderOption {
    readonly name: string;
    readonly [option: string]: unknown;
  }
  interface CpuExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'cpu';
    useArena?: boolean;
  }
  interface CudaExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'cuda';
    deviceId?: number;
  }
  interface ExecutionProviderOptionMap {
    cpu: CpuExecutionProviderOption;
    cuda: CudaExecutionProviderOption;
  }
  type ExecutionProviderName = keyof ExecutionProviderOptionMap;
  type ExecutionProviderConfig =
    | ExecutionProviderOptionMap[ExecutionProviderName]
    | ExecutionProviderOption
    | ExecutionProviderName
    | string;
  interface SessionOptions extends OnnxModelOptions {
    /** The first that is here: "cpu", "cuda", a registered backend, or {name: "headrace", …} with load()'s options. */
    executionProviders?: readonly ExecutionProviderConfig[];
    intraOpNumThreads?: number;
    freeDimensionOverrides?: { readonly [dimension: string]: number };
    /** These are hints for ONNX Runtime, without effect here. */
    interOpNumThreads?: number;
    graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
    enableCpuMemArena?: boolean;
    enableMemPattern?: boolean;
    executionMode?: 'sequential' | 'parallel';
    optimizedModelFilePath?: string;
    enableProfiling?: boolean;
    profileFilePrefix?: string;
    logId?: string;
    logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
    logVerbosityLevel?: number;
    preferredOutputLocation?: OnnxValueDataLocation | { readonly [output: string]: OnnxValueDataLocation };
    enableGraphCapture?: boolean;
    extra?: Record<string, unknown>;
  }
  /** Without effect here. */
  interface RunOptions {
    logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
    logVerbosityLevel?: number;
    terminate?: boolean;
    tag?: string;
    extra?: Record<string, unknown>;
  }
  type OnnxValueMapType = { readonly [name: string]: OnnxValue };
  type NullableOnnxValueMapType = { readonly [name: string]: OnnxValue | null };
  type FeedsType = OnnxValueMapType;
  type FetchesType = readonly string[] | NullableOnnxValueMapType;
  type ReturnType = OnnxValueMapType;
  interface ValueMetadataBase {
    readonly name: string;
  }
  interface NonTensorValueMetadata extends ValueMetadataBase {
    readonly isTensor: false;
  }
  interface TensorValueMetadata extends ValueMetadataBase {
    readonly isTensor: true;
    readonly type: Tensor.Type;
    readonly shape: readonly (number | string)[];
  }
  type ValueMetadata = NonTensorValueMetadata | TensorValueMetadata;
}

export interface InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  run(
    feeds: InferenceSession.FeedsType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  run(
    feeds: InferenceSession.FeedsType,
    fetches: InferenceSession.FetchesType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  release(): Promise<void>;
  /** Runs write no profiles: these do nothing. */
  startProfiling(): void;
  endProfiling(): void;
}
export interface InferenceSessionFactory {
  create(path: string, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  create(
    model: ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  create(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
}
export const InferenceSession: InferenceSessionFactory;

export namespace SessionHandler {
  type FeedsType = { [name: string]: OnnxValue };
  type FetchesType = { [name: string]: OnnxValue | null };
  type ReturnType = { [name: string]: OnnxValue };
}
export interface InferenceSessionHandler {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  run(
    feeds: SessionHandler.FeedsType,
    fetches: SessionHandler.FetchesType,
    options: InferenceSession.RunOptions,
  ): Promise<SessionHandler.ReturnType>;
  startProfiling(): void;
  endProfiling(): void;
  dispose(): Promise<void>;
}
export interface Backend {
  init(backendName: string): Promise<void>;
  createInferenceSessionHandler(
    pathOrBytes: string | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSessionHandler>;
}
/** Sessions whose `executionProviders` name it are the backend's. Of two of one name that of the greater priority is. */
export function registerBackend(name: string, backend: Backend, priority: number): void;

export interface Env {
  logLevel?: 'error' | 'fatal' | 'info' | 'verbose' | 'warning';
  debug?: boolean;
  /** Marks for tools that measure: console.timeStamp and console.time of the functions below. */
  trace?: boolean;
  readonly versions: { readonly common: string; readonly web?: string; readonly node?: string };
  /** Without effect here, but for `wasm.trace`. */
  readonly wasm: { [flag: string]: unknown };
  readonly webgl: { [flag: string]: unknown };
  readonly webgpu: { [flag: string]: unknown };
  [name: string]: unknown;
}
export const env: Env;
export function listSupportedBackends(): { name: string; bundled: boolean }[];
export function TRACE(deviceType: string, label: string): void;
export function TRACE_FUNC_BEGIN(extraMsg?: string): void;
export function TRACE_FUNC_END(extraMsg?: string): void;
export function TRACE_EVENT_BEGIN(extraMsg?: string): void;
export function TRACE_EVENT_END(extraMsg?: string): void;
// Only the ES module has a default export.
import required from './dist/onnxruntime-node.cjs';
export default required;
