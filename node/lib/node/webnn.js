// `headrace/webnn` in Node: the addon as lib/webnn's backend, and navigator.ml. scripts/bundle.mjs makes
// dist/webnn.cjs of it, where `require` is CommonJS's.
import { createML, install, interfaces } from '../webnn/index.js';

/* global require */
const { constants } = require('node:buffer');
const addon = require('../native/headrace.node');

const backend = { ...addon, maxTensorByteLength: constants.MAX_LENGTH };

export const ml = createML(backend);
export const { ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor } = interfaces;
install(globalThis, ml);
