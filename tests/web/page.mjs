// What test_browser.py calls in a page.
import { failureOf, parseCases } from '../node/conformance.mjs';
import * as web from '../../node/lib/web/index.js';

const fetched = async (url) => (await fetch(url)).text();
let context;

/** Those that the page has started: what computes, and their threads. */
window.workers = [];
window.threads = [];
window.Worker = class extends Worker {
  constructor(url, options) {
    super(url, options);
    (options.name === 'headrace' ? window.workers : window.threads).push(this);
  }
};

window.page = {
  web,
  install: async (options) => {
    const { isNative, threads } = await web.install(options);
    return { isNative, threads, isolated: crossOriginIsolated };
  },
  /** [cases, failures] of a file of conformance cases. */
  async conformance(url) {
    context ??= await navigator.ml.createContext();
    const { cases } = parseCases(await fetched(url));
    const failures = [];
    for (const one of cases) {
      const reason = await failureOf(context, one).catch((error) => `${error.name}: ${error.message}`);
      if (reason) failures.push(`${one.name}: ${reason}`);
    }
    return [cases.length, failures];
  },
};
