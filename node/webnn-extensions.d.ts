// What headrace/webnn/extensions adds to the Web Neural Network API of headrace/webnn.
import type { MLDimension, MLGraph, MLOperandDataType } from './webnn.js';

export * from './webnn.js';

export interface MLGraphDescriptor {
  dataType: MLOperandDataType;
  shape: MLDimension[];
}

declare module './webnn.js' {
  interface MLDimensionKinds {
    /** An extent that a dispatch decides. Those of one name are one number; without maxSize it may be any. */
    named: { readonly name: string; readonly maxSize?: number };
  }
  interface MLContextOptions {
    /** "CUDA0" or "rpc://host:port"; overrides `accelerated`. */
    device?: string;
    deviceType?: 'auto' | 'cpu' | 'gpu' | 'npu';
    /** Milliseconds of silence after which a remote host is lost. */
    hostTimeout?: number;
    /** Where packed weights are kept for later starts: "on", a folder or "off". */
    packedCache?: string;
    /** "fast": products of float32 are rounded where that is faster. */
    precision?: 'exact' | 'fast';
    /** 0: all. */
    threads?: number;
    /** How constant matrices of products are stored; with a format, products round their other operand, too. */
    weights?: 'as-given' | 'q8_0' | 'q4_0';
  }
  interface MLContext {
    /** What was taken, "cpu" or a device's name. */
    readonly device: string;
    /** A graph that save() wrote, compiled for this context. */
    loadGraph(path: string): Promise<MLGraph>;
  }
  interface MLGraph {
    readonly inputs: Record<string, MLGraphDescriptor>;
    readonly outputs: Record<string, MLGraphDescriptor>;
    /**
     * Writes a graph file: .webnn and .json in the WebNN graph tools' format, other names in Headrace's. quantized:
     * the constant matrices of products in 8 bits.
     */
    save(path: string, options?: { quantized?: boolean }): Promise<undefined>;
  }
}
