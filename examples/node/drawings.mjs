// Drawings of digits: what is drawn by hand, and many that are made for training, as 12 x 12 numbers.

export const size = 12;

/** A drawing of any size, rows of numbers from 0 to 1: what is drawn fills 12 x 12, its proportions kept. */
export function normalised(rows) {
  const marked = rows.flatMap((row, y) => row.flatMap((value, x) => (value > 0 ? [[x, y]] : [])));
  if (marked.length === 0) throw new Error('nothing is drawn');
  const [xs, ys] = [0, 1].map((axis) => marked.map((point) => point[axis]));
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left + 1, Math.max(...ys) - top + 1];
  const scale = size / Math.max(width, height);
  const [dx, dy] = [(size - width * scale) / 2, (size - height * scale) / 2];
  const image = new Float32Array(size * size);
  // Each mark is spread over the cells that it covers.
  for (const [x, y] of marked) {
    const [x0, y0] = [dx + (x - left) * scale, dy + (y - top) * scale];
    for (let row = Math.floor(y0); row < y0 + scale; row += 1)
      for (let column = Math.floor(x0); column < x0 + scale; column += 1) {
        if (row < 0 || row >= size || column < 0 || column >= size) continue;
        const share = overlap(column, x0, scale) * overlap(row, y0, scale);
        image[row * size + column] = Math.min(1, image[row * size + column] + share * rows[y][x]);
      }
  }
  return image;
}
const overlap = (cell, from, length) => Math.max(0, Math.min(cell + 1, from + length) - Math.max(cell, from));

/** Text: blanks and dots are empty. */
export const ofText = (text) =>
  text
    .replace(/\n+$/, '')
    .split('\n')
    .map((line) => [...line].map((mark) => (mark === ' ' || mark === '.' ? 0 : 1)));

/** Points of an arc around (x, y), angles in quarter turns from the right, downwards. */
function arc(x, y, width, height, from, to) {
  return Array.from({ length: 13 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / 12) * Math.PI) / 2;
    return [x + width * Math.cos(angle), y + height * Math.sin(angle)];
  });
}

/** Strokes of each digit in a square from 0 to 1. */
const strokes = [
  [arc(0.5, 0.5, 0.35, 0.5, 0, 4)],
  [
    [
      [0.3, 0.2],
      [0.55, 0],
      [0.55, 1],
    ],
  ],
  [[...arc(0.5, 0.28, 0.35, 0.28, 2, 4.6), [0.1, 1], [0.9, 1]]],
  [[...arc(0.45, 0.26, 0.35, 0.26, 2.4, 5)], arc(0.45, 0.74, 0.4, 0.26, 3, 5.7)],
  [
    [
      [0.6, 0],
      [0.1, 0.65],
      [0.9, 0.65],
    ],
    [
      [0.65, 0.35],
      [0.65, 1],
    ],
  ],
  [[[0.85, 0], [0.25, 0], [0.2, 0.45], ...arc(0.45, 0.68, 0.4, 0.32, 2.9, 5.7)]],
  [[[0.7, 0], [0.3, 0.35], ...arc(0.5, 0.7, 0.35, 0.3, 2, 6)]],
  [
    [
      [0.1, 0],
      [0.9, 0],
      [0.4, 1],
    ],
  ],
  [arc(0.5, 0.25, 0.3, 0.25, 0, 4), arc(0.5, 0.75, 0.36, 0.25, 0, 4)],
  [[...arc(0.5, 0.28, 0.34, 0.28, 0, 4), [0.8, 0.6], [0.6, 1]]],
];

/** Numbers from 0 to 1, the same for the same seed (xorshift). */
export function random(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A digit as somebody might draw it: turned, slanted, narrow or wide, with a pen of some width and a shaky hand. */
export function drawn(digit, next) {
  const around = (most) => (next() * 2 - 1) * most;
  const canvas = 24;
  const rows = Array.from({ length: canvas }, () => new Array(canvas).fill(0));
  const [turn, slant, wide, pen] = [around(0.25), around(0.3), 0.55 + next() * 0.5, 0.6 + next() * 1.1];
  const place = ([x, y]) => {
    const [u, v] = [(x - 0.5) * wide + slant * (0.5 - y) + around(0.03), y - 0.5 + around(0.03)];
    const [s, c] = [Math.sin(turn), Math.cos(turn)];
    return [canvas / 2 + 15 * (c * u - s * v), canvas / 2 + 15 * (s * u + c * v)];
  };
  for (const stroke of strokes[digit]) {
    const points = stroke.map(place);
    for (let i = 0; i + 1 < points.length; i += 1)
      for (let t = 0; t <= 1; t += 0.05) {
        const [x, y] = [0, 1].map((axis) => points[i][axis] + t * (points[i + 1][axis] - points[i][axis]));
        for (let row = Math.round(y - pen); row <= y + pen; row += 1)
          for (let column = Math.round(x - pen); column <= x + pen; column += 1)
            if (rows[row]?.[column] === 0 && Math.hypot(row - y, column - x) <= pen) rows[row][column] = 1;
      }
  }
  return normalised(rows);
}
