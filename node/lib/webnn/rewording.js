// A backend's refusals in WebNN's words.
import { describe } from './data_types.js';

/**
 * For an operator's row: (message, title, label, operands given) -> the message with WebNN's names, which says of what
 * operands it speaks. The catalog's name and the label lead a message.
 */
export function rewording(row) {
  const entries = [...row.parameters, ...row.options];
  const names = new Map(entries.map(([name, , target]) => [target, name]));
  return (message, title, label, given) => {
    const lead = label ? `${row.catalog} (${label})` : row.catalog;
    if (!message.startsWith(`${lead}:`)) return `${title}: ${message}`;
    const said = message.slice(lead.length).replace(/\b[a-z]\w*\b/g, (word) => names.get(word) ?? word);
    if (given.length === 0 || entries.some(([name]) => new RegExp(`\\b${name}\\b`).test(said)))
      return title + said;
    return `${title}${said}; ${given.map(([name, descriptor]) => `${name} is ${describe(descriptor)}`).join(', ')}`;
  };
}
