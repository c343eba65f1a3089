import { checkBoolean, checkInteger, checkOptions, checkText, checkTexts } from './check.js';
import { settled } from './error.js';
import { toPath } from './model.js';

/** Texts as numbers of tokens, by the file tokenizer.json of a model of Hugging Face's. */
export class Tokenizer {
  #addon;
  #handle;

  constructor(addon, opened) {
    if (!opened?.handle) throw new TypeError('Tokenizer: Tokenizer.load() makes tokenizers');
    this.#addon = addon;
    this.#handle = opened.handle;
    this.size = opened.size;
    this.paddingId = opened.paddingId;
    this.mostTokens = opened.mostTokens;
  }

  /** {ids, types}, Int32Arrays, of a text, or of two with `pair`; a list of them for a list of texts. */
  async encode(texts, options) {
    const {
      pair,
      mostTokens = 0,
      special = true,
    } = checkOptions(options, 'encode: the options', ['mostTokens', 'pair', 'special']);
    const isList = Array.isArray(texts);
    const list = (value, what) => (isList ? checkTexts(value, what) : [checkText(value, what)]);
    const first = list(texts, isList ? 'encode: texts' : 'encode: the text');
    const second = pair === undefined ? [] : list(pair, 'encode: pair');
    if (pair !== undefined && second.length !== first.length)
      throw new TypeError(`encode: pair has ${second.length} texts; there are ${first.length} to pair with`);
    checkInteger(mostTokens, 'encode: mostTokens');
    checkBoolean(special, 'encode: special');
    const encoded = await settled(this.#addon.encodeTexts(this.#handle, first, second, mostTokens, special));
    return isList ? encoded : encoded[0];
  }
}

/** The class with load() on an addon. */
export function tokenizerOn(addon) {
  return Object.assign(Tokenizer, {
    /** The tokenizer of a file. */
    async load(path) {
      return new Tokenizer(
        addon,
        await settled(addon.openTokenizer(toPath(path, 'Tokenizer.load: the path'))),
      );
    },
  });
}
