// Which digit is drawn, by the network that examples/node/train_digits.mjs trains.
import { load } from '../../node/lib/web/index.js';
import { normalized } from '../node/drawings.mjs';

const cells = 24;

export function drawDigits() {
  const canvas = document.querySelector('#drawing');
  const note = document.querySelector('#digit');
  const pen = canvas.getContext('2d');
  const side = canvas.width / cells;
  const rows = Array.from({ length: cells }, () => new Array(cells).fill(0));
  const cursor = { x: 8, y: 4, isShown: false };
  let model;
  let turn = 0;

  function paint() {
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = '#123';
    rows.forEach((row, y) => row.forEach((on, x) => on && pen.fillRect(x * side, y * side, side, side)));
    if (!cursor.isShown) return;
    pen.strokeStyle = '#c30';
    pen.lineWidth = 2;
    pen.strokeRect(cursor.x * side, cursor.y * side, 2 * side, 2 * side);
  }

  async function tell() {
    const mine = ++turn;
    if (!rows.flat().some(Boolean)) {
      note.textContent = 'Nothing is drawn.';
      return;
    }
    model ??= load('/models/digits.hrg');
    try {
      const begin = performance.now();
      const { probabilities } = await (await model).run({ image: normalized(rows) });
      const took = (performance.now() - begin).toFixed(1);
      if (mine !== turn) return;
      const order = [...probabilities.data.keys()].sort(
        (a, b) => probabilities.data[b] - probabilities.data[a],
      );
      const texts = order.slice(0, 3).map((d) => `${d} (${(100 * probabilities.data[d]).toFixed(0)} %)`);
      note.textContent = `${texts.join(', ')}; ${took} ms.`;
    } catch (error) {
      model = undefined;
      note.textContent = `It failed: ${error.message}`;
    }
  }

  function mark(x, y) {
    for (const [dx, dy] of [[0, 0], [1, 0], [0, 1], [1, 1]]) // prettier-ignore
      if (rows[y + dy]?.[x + dx] !== undefined) rows[y + dy][x + dx] = 1;
    paint();
  }
  const at = ({ offsetX, offsetY }) => {
    const scale = cells / canvas.clientWidth;
    return [Math.floor(offsetX * scale), Math.floor(offsetY * scale)];
  };
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    mark(...at(event));
  });
  canvas.addEventListener('pointermove', (event) => event.buttons && mark(...at(event)));
  canvas.addEventListener('pointerup', tell);
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], ' ': [0, 0] };
  canvas.addEventListener('keydown', (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    cursor.x = Math.min(cells - 2, Math.max(0, cursor.x + step[0]));
    cursor.y = Math.min(cells - 2, Math.max(0, cursor.y + step[1]));
    if (event.key === ' ') {
      mark(cursor.x, cursor.y);
      tell();
    }
    paint();
  });
  for (const [kind, isShown] of [['focus', true], ['blur', false]]) // prettier-ignore
    canvas.addEventListener(kind, () => {
      cursor.isShown = isShown;
      paint();
    });
  document.querySelector('#clear').addEventListener('click', () => {
    for (const row of rows) row.fill(0);
    paint();
    tell();
  });
}
