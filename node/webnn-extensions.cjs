// Turns on what is ahead of the specification in headrace/webnn: dynamic dimensions, graphs as files, and where and
// how a context computes.
'use strict';
const webnn = require('./dist/webnn.cjs');

webnn.ml[Symbol.for('headrace.extensions')]();
module.exports = webnn;
