// `headrace` in Node: models and language models. scripts/bundle.mjs makes dist/headrace.cjs of it.
import { HeadraceError, settled } from '../models/error.js';
import { loader } from '../models/model.js';
import { tokenizerOn } from '../models/tokenizer.js';
import { languageModelOn } from '../llm/language_model.js';
import { native } from './native.js';

/* global require */
const { isMainThread } = require('node:worker_threads');

const addon = native('headrace');
let engines;

/** The addon with llama.cpp in it, which is loaded with the first language model. */
function withEngines() {
  if (engines) return engines;
  engines = native('headrace-llm');
  // What engines use is destroyed soon after.
  if (isMainThread) process.once('exit', () => engines.end());
  return engines;
}

export const load = loader(addon);
export const Tokenizer = tokenizerOn(addon);
export const LanguageModel = languageModelOn(withEngines);
/** Every device that ggml found. */
export const devices = () => settled(addon.devices());

export { HeadraceError };
