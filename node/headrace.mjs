// One instance for both kinds of modules: what require() gave is what import gives.
import headrace from './dist/headrace.cjs';

export const { HeadraceError, LanguageModel, Tokenizer, devices, load } = headrace;
