import { HeadraceError, settled } from '../models/error.js';

/**
 * An answer that is being written: an async iterator over its pieces of text, whole characters each. One whose
 * reader leaves the loop is cancelled.
 */
export class Generation {
  #addon;
  #handle; // a promise
  #signal;
  #turn = Promise.resolve(); // pieces come in order, whoever asks at once
  #isOver = false;
  #isCancelled = false; // by who has it
  #isDisposed;
  #forget = () => {};

  /** isDisposed: says whether the model is. */
  constructor(addon, begin, signal, isDisposed) {
    this.#addon = addon;
    this.#signal = signal;
    this.#isDisposed = isDisposed;
    this.#handle = signal?.aborted ? Promise.reject(signal.reason) : settled(begin());
    this.#handle.catch(() => {}); // who asks for a piece or the reply is told
    if (!signal || signal.aborted) return;
    // The signal may live longer than this answer, which it must not keep.
    const weak = new WeakRef(this);
    const abort = () => weak.deref()?.cancel();
    signal.addEventListener('abort', abort, { once: true });
    this.#forget = () => signal.removeEventListener('abort', abort);
  }

  /** Ends the answer within a step. What was written until then is the reply's, with the stopReason "cancelled". */
  cancel() {
    this.#isCancelled = true;
    this.#stop();
  }

  /** The whole answer, whatever was read of it. */
  async reply() {
    await this.#handle;
    await this.#turn;
    try {
      return await this.#whole();
    } catch (error) {
      throw this.#reason(error);
    } finally {
      this.#end();
    }
  }

  next() {
    const piece = this.#turn.then(() => this.#next());
    this.#turn = piece.catch(() => {});
    return piece;
  }

  async return(value) {
    if (!this.#isOver) this.cancel();
    this.#end();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  #stop() {
    this.#handle.then(
      (handle) => this.#addon.cancel(handle),
      () => {},
    );
  }

  async #whole() {
    const reply = await settled(this.#addon.reply(await this.#handle));
    this.#signal?.throwIfAborted();
    if (reply.stopReason === 'cancelled' && this.#isDisposed() && !this.#isCancelled)
      throw new HeadraceError('cancelled', 'the model was disposed of while it wrote the answer');
    return reply;
  }

  async #next() {
    if (this.#isOver) return { done: true, value: undefined };
    try {
      const piece = await settled(this.#addon.next(await this.#handle));
      this.#signal?.throwIfAborted();
      if (piece !== undefined) return { done: false, value: piece };
      if (this.#isDisposed()) await this.#whole();
    } catch (error) {
      this.#stop();
      this.#end();
      throw this.#reason(error);
    }
    this.#end();
    return { done: true, value: undefined };
  }

  #end() {
    this.#isOver = true;
    this.#forget();
  }

  /** The error of a generation: its signal's reason where that aborted it. */
  #reason(error) {
    return this.#signal?.aborted ? this.#signal.reason : error;
  }
}
