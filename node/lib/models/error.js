/**
 * A call that was refused or failed. `code`: invalid_argument, unsupported, out_of_memory, invalid_state, io,
 * backend_failure, not_found, denied, busy, timed_out, cancelled, prompt_too_long or context_full.
 */
export class HeadraceError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
Object.defineProperty(HeadraceError.prototype, 'name', {
  value: 'HeadraceError',
  writable: true,
  configurable: true,
});

/** The value of an addon's promise, or its failure as ours, with the stack of who waits. */
export async function settled(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error?.code ? new HeadraceError(error.code, error.message) : error;
  }
}
