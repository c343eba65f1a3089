// node/webnn.mjs in a page: navigator.ml by headrace/web.
import { install } from '../../../node/lib/web/index.js';

const threads = new URLSearchParams(location.search).get('threads');
await install({ force: true, threads: Number(threads) });
