// `headrace` in Node: models and language models. scripts/bundle.mjs makes dist/headrace.cjs of it.
import { HeadraceError, settled } from '../models/error.js';
import { loader } from '../models/model.js';
import { tokenizerOn } from '../models/tokenizer.js';
import { languageModelOn } from '../llm/language_model.js';
import { native } from './native.js';

const addon = native('headrace');

export const load = loader(addon);
export const Tokenizer = tokenizerOn(addon);
/** The addon with llama.cpp in it is loaded with the first language model. */
export const LanguageModel = languageModelOn(() => native('headrace-llm'));
/** Every device that ggml found. */
export const devices = () => settled(addon.devices());

export { HeadraceError };
