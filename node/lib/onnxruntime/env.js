const levels = ['verbose', 'info', 'warning', 'error', 'fatal'];
let logLevel = 'warning';

/** Settings that callers of onnxruntime-common make. Nothing is logged here. */
export const env = {
  wasm: {},
  webgl: {},
  webgpu: {},
  versions: { common: '1.30.0', node: '1.30.0' }, // whose API this is
  get logLevel() {
    return logLevel;
  },
  set logLevel(value) {
    if (value === undefined) return;
    if (!levels.includes(value))
      throw new Error(`env.logLevel is ${String(value)}; there are ${levels.join(', ')}`);
    logLevel = value;
  },
};
