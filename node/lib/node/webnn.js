// `headrace/webnn` in Node: the addon as lib/webnn's backend, and navigator.ml. scripts/bundle.mjs makes
// dist/webnn.cjs of it, where `require` is CommonJS's.
import { createML, install, interfaces } from '../webnn/index.js';
import { native } from './native.js';

/* global require */
const { constants } = require('node:buffer');
const addon = native('headrace');

const backend = { ...addon, maxTensorByteLength: constants.MAX_LENGTH };

export const ml = createML(backend);
export const { ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor } = interfaces;
install(globalThis, ml);
