// The page's three parts on one engine.
import { install } from '../../node/lib/web/index.js'; // 'headrace/web' where the package is installed
import { drawDigits } from './digits.mjs';
import { keepForOffline } from './offline.mjs';
import { runModels } from './own_model.mjs';
import { search } from './search.mjs';

const engine = document.querySelector('#engine');
const ready = search(); // fetches its model while the engine starts
try {
  const { threads, isNative } = await install();
  const how = isNative ? "this browser's own WebNN" : `${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  engine.textContent = `Ready: WebAssembly with SIMD, ${how}.`;
  drawDigits();
  runModels();
  await ready; // the sentences come first
  if (await keepForOffline()) engine.textContent += ' It works offline, too.';
} catch (error) {
  engine.textContent = `The engine does not start: ${error.message}`;
}
