import { checkBoolean, checkOptions, checkText, checkTexts } from '../models/check.js';
import { HeadraceError, settled } from '../models/error.js';
import { abortable, toPath } from '../models/model.js';
import { Conversation } from './conversation.js';
import { Generation } from './generation.js';
import { toCallOptions, toJson, toParameters, toRequest, toTokens } from './request.js';

/** That are given to the engine at once where a signal may end the work. */
const textsAtOnce = 64;

/**
 * What `work` makes of the texts, as a list of its results: of all at once, or, with a signal, of some after the
 * other, between which it ends the work. Whoever waits is told at once.
 */
async function ofTexts(texts, signal, work) {
  if (!signal) return [await settled(work(texts))];
  signal.throwIfAborted();
  const parts = async () => {
    const made = [];
    for (let at = 0; at === 0 || (at < texts.length && !signal.aborted); at += textsAtOnce)
      made.push(await settled(work(texts.slice(at, at + textsAtOnce))));
    return made;
  };
  return abortable(parts(), signal, () => {});
}

/** A GGUF language model and its engine; LanguageModel.load() makes it. */
export class LanguageModel {
  #addon;
  #handle;
  #isDisposed = false;

  constructor(addon, loaded) {
    if (!loaded?.handle) throw new TypeError('LanguageModel: LanguageModel.load() makes language models');
    this.#addon = addon;
    this.#handle = loaded.handle;
    this.kind = loaded.kind;
    this.warnings = loaded.warnings;
  }

  /** The whole answer to a text, to messages, or to tokens. */
  async generate(prompt, options) {
    return this.#begin(prompt, options, 'generate').reply();
  }

  /** The same in pieces. */
  stream(prompt, options) {
    return this.#begin(prompt, options, 'stream');
  }

  /** A conversation of that name, new or known; without a name one of its own. */
  async conversation(options) {
    const known = ['name', 'parameters'];
    const { name = '', parameters } = checkOptions(options, 'conversation: the options', known);
    const text = checkText(name, 'conversation: name');
    const values = toParameters(parameters, 'conversation: parameters');
    const made = this.#addon.conversation(this.#open(), text, toJson(values));
    return new Conversation(this.#addon, await settled(made), () => this.#isDisposed);
  }

  /** The vector of a text, or of each text of a list: Float32Arrays. */
  async embed(texts, options) {
    const isList = Array.isArray(texts);
    const list = isList ? checkTexts(texts, 'embed: texts') : [checkText(texts, 'embed: the text')];
    const vectors = await this.#embed(list, options, 'embed', false);
    return isList ? vectors : vectors[0];
  }

  /** A vector of each token of a text. */
  async embedTokens(text, options) {
    const list = [checkText(text, 'embedTokens: the text')];
    return this.#embed(list, options, 'embedTokens', true);
  }

  /** How well each document answers the query: a Float32Array. */
  async rerank(query, documents, options) {
    const text = checkText(query, 'rerank: the query');
    const list = checkTexts(documents, 'rerank: documents');
    const { parameters, signal } = toCallOptions(options, 'rerank');
    const json = toJson(parameters);
    const work = (some) => this.#addon.rerank(this.#open(), text, some, json);
    const scores = await ofTexts(list, signal, work);
    return scores.length === 1 ? scores[0] : Float32Array.from(scores.flatMap((part) => [...part]));
  }

  /** An Int32Array. `special`: with the marks of begin and end; `control`: control tokens are read as such. */
  async tokenize(text, options) {
    const { special = true, control = true } = checkOptions(options, 'tokenize: the options', [
      'control',
      'special',
    ]);
    checkBoolean(special, 'tokenize: special');
    checkBoolean(control, 'tokenize: control');
    return settled(
      this.#addon.tokenize(this.#open(), checkText(text, 'tokenize: the text'), special, control),
    );
  }

  /** The text of an Int32Array of tokens. */
  async detokenize(tokens) {
    return settled(this.#addon.detokenize(this.#open(), toTokens(tokens, 'detokenize: the tokens')));
  }

  /** What the file and its load say of the model. */
  async information() {
    const information = await settled(this.#addon.information(this.#open()));
    return { ...information, metadata: JSON.parse(information.metadata) };
  }

  /** Counts since the load, and what goes on now. */
  async statistics() {
    return settled(this.#addon.statistics(this.#open()));
  }

  /** Rejects all that goes on with the code "cancelled", half-written answers as well, and frees the model. */
  async dispose() {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    await settled(this.#addon.dispose(this.#handle));
  }

  #open() {
    if (this.#isDisposed) throw new HeadraceError('invalid_state', 'the model is disposed of; load it again');
    return this.#handle;
  }

  #begin(prompt, options, call) {
    const { parameters, signal } = toCallOptions(options, call);
    const request = toRequest(prompt, parameters, call);
    const handle = this.#open();
    const begin = () => this.#addon.stream(handle, request);
    return new Generation(this.#addon, begin, signal, () => this.#isDisposed);
  }

  async #embed(texts, options, call, ofTokens) {
    const { parameters, signal } = toCallOptions(options, call);
    const json = toJson(parameters);
    const work = (some) => this.#addon.embed(this.#open(), some, json, ofTokens);
    try {
      return (await ofTexts(texts, signal, work)).flat();
    } catch (error) {
      // C++ and Python have that name.
      if (error instanceof HeadraceError) error.message = error.message.replace('embed_tokens', 'embedTokens');
      throw error;
    }
  }
}

/** The class with load() on an addon, which the first load asks for. */
export function languageModelOn(addon) {
  return Object.assign(LanguageModel, {
    /** path: of a GGUF file, or its first part. parameters: docs/parameters.md's. */
    async load(path, options) {
      const { parameters } = checkOptions(options, 'LanguageModel.load: the options', ['parameters']);
      const file = toPath(path, 'LanguageModel.load: the path');
      const values = toParameters(parameters, 'LanguageModel.load: parameters');
      const engine = addon();
      return new LanguageModel(engine, await settled(engine.load(file, toJson(values))));
    },
  });
}
