import { checkText } from '../models/check.js';
import { settled } from '../models/error.js';
import { abortable } from '../models/model.js';
import { wellFormed } from '../text.js';
import { Generation } from './generation.js';
import { toCallOptions, toJson } from './request.js';

/**
 * Messages and answers that a model remembers; LanguageModel.conversation makes them. One request at a time: what is
 * said meanwhile waits, unless the other one is read piece by piece; then it is refused with the code "busy".
 */
export class Conversation {
  #addon;
  #handle;
  #isDisposed;
  #said = Promise.resolve(); // until all that is waited for has been said

  constructor(addon, handle, isDisposed) {
    this.#addon = addon;
    this.#handle = handle;
    this.#isDisposed = isDisposed;
  }

  /** The answer to a user's message, after those that are waited for already. */
  async say(message, options) {
    const asked = this.#asked(message, options, 'say');
    asked.signal?.throwIfAborted();
    const before = this.#said;
    const turn = asked.signal ? abortable(before, asked.signal, () => {}) : before;
    const answer = turn.then(() => this.#begin(asked).reply());
    this.#said = Promise.allSettled([before, answer]).then(() => {}); // keeps no answers
    return answer;
  }

  /** The same in pieces. */
  stream(message, options) {
    return this.#begin(this.#asked(message, options, 'stream'));
  }

  /** What was said so far. */
  async messages() {
    return settled(this.#addon.messages(this.#handle));
  }

  #asked(message, options, call) {
    const text = wellFormed(checkText(message, `${call}: the message`));
    const { parameters, signal } = toCallOptions(options, call);
    return { text, parameters: toJson(parameters), signal };
  }

  #begin({ text, parameters, signal }) {
    const begin = () => this.#addon.streamIn(this.#handle, text, parameters);
    return new Generation(this.#addon, begin, signal, this.#isDisposed);
  }
}
