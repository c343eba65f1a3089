// onnxruntime-common's marks for tools that measure: none unless `env.trace` or `env.wasm.trace` is true.
import { env } from './env.js';

const isOn = () => Boolean(env.trace ?? env.wasm.trace);

/** The name of the function that called the one which asks. */
const callerOf = (stack) => stack.split('\n')[3]?.trim().split(' ')[1] ?? '';

function markFunction(what, more) {
  if (!isOn()) return;
  const caller = callerOf(new Error().stack);
  TRACE('CPU', `FUNC_${what}::${caller}${more ? `::${more}` : ''}`);
}

export function TRACE(deviceType, label) {
  if (isOn()) console.timeStamp(`${deviceType}::ORT::${label}`);
}
export function TRACE_FUNC_BEGIN(more) {
  markFunction('BEGIN', more);
}
export function TRACE_FUNC_END(more) {
  markFunction('END', more);
}
export function TRACE_EVENT_BEGIN(event) {
  if (isOn()) console.time(`ORT::${event}`);
}
export function TRACE_EVENT_END(event) {
  if (isOn()) console.timeEnd(`ORT::${event}`);
}
