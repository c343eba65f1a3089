// From here on `onnxruntime-node` is headrace/onnxruntime-node to whoever imports or requires it: transformers.js
// runs on Headrace with this line before its own.
'use strict';
const Module = require('node:module');
const { join } = require('node:path');
const { pathToFileURL } = require('node:url');

const name = 'onnxruntime-node';
const required = join(__dirname, '..', 'dist', 'onnxruntime-node.cjs');
const imported = pathToFileURL(join(__dirname, '..', 'onnxruntime-node.mjs')).href;

if (Module.registerHooks) {
  Module.registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== name) return next(specifier, context);
      const isRequire = context.conditions.includes('require');
      return { url: isRequire ? pathToFileURL(required).href : imported, shortCircuit: true };
    },
  });
} else {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, ...rest) {
    return request === name ? required : resolve.call(this, request, ...rest);
  };
  const hooks = `export const resolve = (specifier, context, next) =>
    specifier === '${name}' ? { url: '${imported}', shortCircuit: true } : next(specifier, context);`;
  Module.register?.(`data:text/javascript,${encodeURIComponent(hooks)}`);
}
