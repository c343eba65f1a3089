// The command line of both hosts:
//   [--alias NAME=MODEL]... [--config JSON] [--dir FOLDER::NAME]... [--max-memory BYTES] [--max-time SECONDS] ADDON LIBRARY ...
import { resolve } from 'node:path';

function number(option, text, least) {
  const value = Number(text);
  if (!(value >= least && value < Infinity)) throw new Error(`${option} takes a number from ${least}, not '${text}'`);
  return value;
}

/** "NAME=MODEL" as an alias; without a name it is `named`. */
export function alias(text, named) {
  const [, name = named, model] = /^(?:([^=]*)=)?(.*)$/s.exec(text);
  if (!name || !model) throw new Error(`a model is NAME=MODEL, not '${text}'`);
  return [name, resolve(model)];
}

function parameters(text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    // told below
  }
  if (read === null || typeof read !== 'object' || Array.isArray(read))
    throw new Error(`--config takes parameters as a JSON object, not '${text}'`);
  return read;
}

/** What the options say, and the arguments that follow them. */
export function read(given) {
  const options = { aliases: {}, config: {}, folders: {}, maxMemory: undefined, maxTime: undefined };
  let at = 0;
  for (; given[at]?.startsWith('--') && given[at + 1] !== undefined; at += 2) {
    const [option, value] = [given[at], given[at + 1]];
    if (option === '--alias') {
      const [name, model] = alias(value);
      options.aliases[name] = model;
    } else if (option === '--config') options.config = parameters(value);
    else if (option === '--dir') {
      const [folder, name] = value.split('::');
      options.folders[name ?? folder] = resolve(folder);
    } else if (option === '--max-memory') options.maxMemory = Math.floor(number(option, value, 1));
    else if (option === '--max-time') options.maxTime = number(option, value, 0.001);
    else if (option === '--ended-by') options.endedBy = Number(value); // limits.mjs
    else throw new Error(`there is no option ${option}`);
  }
  return { options, rest: given.slice(at) };
}

/** What the library is told of them: parameters may lie in their group, `service`. */
export function config({ aliases, config: given, maxMemory }) {
  const { service: group, ...others } = given;
  const { model_aliases: own, ...service } = { ...others, ...group };
  return { max_memory_bytes: maxMemory, ...service, model_aliases: { ...own, ...aliases } };
}
