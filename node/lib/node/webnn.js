// `headrace/webnn` in Node: the addon as lib/webnn's backend, and navigator.ml. scripts/bundle.mjs makes
// dist/webnn.cjs of it, where `require` is CommonJS's.
import { createML, install, interfaces } from '../webnn/index.js';
import { native } from './native.js';

/* global require */
const { constants } = require('node:buffer');
const { totalmem } = require('node:os');
const { constrainedMemory } = require('node:process');
const addon = native('headrace');

/** What an ArrayBuffer may have, and the machine has, or the container (0 or undefined: nobody says). */
const memory = Math.min(totalmem(), constrainedMemory?.() || Infinity);
const backend = { ...addon, maxTensorByteLength: Math.min(constants.MAX_LENGTH, memory) };

export const ml = createML(backend);
export const { ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor } = interfaces;
install(globalThis, ml);
