// onnxruntime-common's registry: backends that programs bring, by the names that `executionProviders` gives them.
import { kindOf } from '../models/check.js';

const registered = new Map();

/** Registers a backend; of two with one name the greater priority counts. */
export function registerBackend(name, backend, priority) {
  if (typeof backend?.init !== 'function' || typeof backend.createInferenceSessionHandler !== 'function')
    throw new TypeError(
      `registerBackend: the backend is ${kindOf(backend)}; it needs init() and createInferenceSessionHandler()`,
    );
  const known = registered.get(name);
  if (known?.priority === priority && known.backend !== backend)
    throw new Error(`registerBackend: "${name}" has another backend of the priority ${priority}`);
  if (!known || known.priority < priority) registered.set(name, { backend, priority });
}

/** The one of that name, ready; undefined where there is none. */
export async function startedBackend(name) {
  const known = registered.get(name);
  if (!known) return undefined;
  known.started ??= known.backend.init(name);
  await known.started;
  return known.backend;
}
