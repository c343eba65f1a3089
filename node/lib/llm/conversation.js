import { checkText } from '../models/check.js';
import { settled } from '../models/error.js';
import { Generation } from './generation.js';
import { toCallOptions } from './request.js';

/**
 * Messages and answers that a model remembers; LanguageModel.conversation makes them. One request at a time: one
 * more, while another is read piece by piece, is refused with the code "busy".
 */
export class Conversation {
  #addon;
  #handle;

  constructor(addon, handle) {
    this.#addon = addon;
    this.#handle = handle;
  }

  /** The answer to a user's message. */
  async say(message, options) {
    return this.#begin(message, options, 'say').reply();
  }

  /** The same in pieces. */
  stream(message, options) {
    return this.#begin(message, options, 'stream');
  }

  /** What was said so far. */
  async messages() {
    return settled(this.#addon.messages(this.#handle));
  }

  #begin(message, options, call) {
    const text = checkText(message, `${call}: the message`);
    const { parameters, signal } = toCallOptions(options, call);
    const begin = () => this.#addon.streamIn(this.#handle, text, JSON.stringify(parameters));
    return new Generation(this.#addon, begin, signal);
  }
}
