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
  type Type = keyof DataTypeMap;
  type DataType = DataTypeMap[Type];
  type DataLocation = 'cpu' | 'none';
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
  new (
    data: Tensor.DataType | Uint8ClampedArray | readonly boolean[] | readonly string[],
    dims?: readonly number[],
  ): Tensor;
  new <T extends Tensor.Type>(pinned: {
    location: 'cpu-pinned';
    type: T;
    data: Tensor.DataTypeMap[T];
    dims: readonly number[];
  }): TypedTensor<T>;
}
export const Tensor: TensorConstructor;
/** What models take and give; sequences and maps are not read. */
export type OnnxValue = Tensor;

export namespace InferenceSession {
  type ExecutionProviderConfig = string | { readonly name: string; readonly [option: string]: unknown };
  interface SessionOptions {
    /** The first that is here: "cpu", "cuda", or {name: "headrace", …} with load()'s options. */
    executionProviders?: readonly ExecutionProviderConfig[];
    intraOpNumThreads?: number;
    freeDimensionOverrides?: { readonly [dimension: string]: number };
    /** Others are ONNX Runtime's hints, without effect here. */
    readonly [option: string]: unknown;
  }
  interface RunOptions {
    readonly [option: string]: unknown;
  }
  type OnnxValueMapType = { readonly [name: string]: OnnxValue };
  type NullableOnnxValueMapType = { readonly [name: string]: OnnxValue | null };
  type FeedsType = OnnxValueMapType;
  type FetchesType = readonly string[] | NullableOnnxValueMapType;
  type ReturnType = OnnxValueMapType;
  interface TensorValueMetadata {
    readonly name: string;
    readonly isTensor: true;
    readonly type: Tensor.Type;
    readonly shape: readonly (number | string)[];
  }
  type ValueMetadata = TensorValueMetadata;
}

export class InferenceSession {
  private constructor();
  static create(path: string, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  static create(
    model: ArrayBufferLike | Uint8Array,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static create(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
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
}

export interface Env {
  logLevel: 'error' | 'fatal' | 'info' | 'verbose' | 'warning';
  readonly versions: { readonly common: string; readonly node: string };
  readonly wasm: Record<string, unknown>;
  readonly webgl: Record<string, unknown>;
  readonly webgpu: Record<string, unknown>;
}
export const env: Env;
export function listSupportedBackends(): { name: string; bundled: boolean }[];
