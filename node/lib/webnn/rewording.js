// A backend's refusals in WebNN's words.
import { describe } from './data_types.js';

/** As many operands are named; concat may have thousands. */
const mostTold = 8;

/** "; a is float32[2, 3], b is float32[4]" */
export function told(given) {
  if (given.length === 0) return '';
  const rest = given.length > mostTold ? ` and ${given.length - mostTold} more` : '';
  const each = given.slice(0, mostTold).map(([name, descriptor]) => `${name} is ${describe(descriptor)}`);
  return `; ${each.join(', ')}${rest}`;
}

/**
 * For an operator's row: (message, title, label, operands given) -> the message with WebNN's names, and what the
 * operands are. The catalog's name and the label lead a message.
 */
export function rewording(row) {
  const entries = [...row.parameters, ...row.options];
  const names = new Map(entries.map(([name, , target]) => [target, name]));
  return (message, title, label, given) => {
    const lead = label ? `${row.catalog} (${label})` : row.catalog;
    const plain = message.startsWith(`${lead}:`) ? message.slice(lead.length + 1).trim() : message;
    const said = plain.replace(/\b[a-z]\w*\b/g, (word) => names.get(word) ?? word);
    return `${title}: ${said}${told(given)}`;
  };
}
