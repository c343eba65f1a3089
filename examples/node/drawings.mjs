// Drawings of digits: what is drawn by hand, and many that are made for training, as 12 x 12 numbers.
import { path, styles } from './strokes.mjs';

export const size = 12;

/** A drawing of any size, rows of numbers from 0 to 1: what is drawn fills 12 x 12, its proportions kept. */
export function normalized(rows) {
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

/**
 * A digit as somebody might draw it, in a style of some people's: turned, slanted, narrow or wide, bent, by a shaky hand,
 * with a pen of some width, on paper or in the coarse cells of a text.
 */
export function drawn(digit, next) {
  const around = (most) => (next() * 2 - 1) * most;
  const height = 6 + Math.floor(next() * 26);
  const pen = 0.45 + next() * Math.max(0.35, height * 0.09);
  const [turn, slant, wide] = [around(0.22), around(0.3), 0.45 + next() * 0.65];
  const [bend, phase] = [around(0.06), next() * 6];
  const canvas = Math.ceil(2 * height + 4 * pen);
  const rows = Array.from({ length: canvas }, () => new Array(canvas).fill(0));
  const [s, c] = [Math.sin(turn), Math.cos(turn)];
  const place = ([x, y]) => {
    const u = (x - 0.5) * wide + slant * (0.5 - y) + bend * Math.sin(phase + 4 * y);
    const v = y - 0.5 + bend * Math.sin(phase + 4 * x);
    return [canvas / 2 + height * (c * u - s * v), canvas / 2 + height * (s * u + c * v)];
  };
  const shaken = ({ points, isCurved }) => ({
    points: points.map(([x, y]) => [x + around(0.05), y + around(0.05)]),
    isCurved,
  });
  const style = styles[digit][Math.floor(next() * styles[digit].length)];
  for (const stroke of style)
    for (const [x, y] of path(shaken(stroke)).map(place))
      for (let row = Math.round(y - pen); row <= y + pen; row += 1)
        for (let column = Math.round(x - pen); column <= x + pen; column += 1)
          if (rows[row]?.[column] === 0 && Math.hypot(row - y, column - x) <= pen) rows[row][column] = 1;
  return rows.flat().some(Boolean) ? normalized(rows) : drawn(digit, next);
}
