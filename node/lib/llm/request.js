// What language models are asked, as JSON for the addon.
import { viewKind } from '../memory.js';
import { checkOptions, checkText, isRecord, kindOf } from '../models/check.js';
import { wellFormed } from '../text.js';

const roles = ['system', 'user', 'assistant', 'tool'];
const messageKeys = ['role', 'content', 'reasoning', 'toolCalls', 'toolCallId', 'toolName'];

/** Texts as UTF-8 can have them: JSON would spell half a surrogate pair out, which no reader of UTF-8 takes. */
export const toJson = (value) =>
  JSON.stringify(value, (_, item) => (typeof item === 'string' ? wellFormed(item) : item));

/** Parameters' values are what JSON has; a path names the one that is not. */
function checkParameter(value, what) {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean')
    return;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${what} is ${value}; it must be a finite number`);
    return;
  }
  if (Array.isArray(value)) value.forEach((item, i) => checkParameter(item, `${what}[${i}]`));
  else if (isRecord(value))
    Object.entries(value).forEach(([key, item]) => checkParameter(item, `${what}.${key}`));
  else
    throw new TypeError(
      `${what} is ${kindOf(value)}; a number, a string, true or false, a list or an object is needed`,
    );
}

export function toParameters(value, what) {
  if (value === undefined) return {};
  if (!isRecord(value)) throw new TypeError(`${what} are ${kindOf(value)}; an object is needed`);
  checkParameter(value, what);
  return value;
}

/** The options of a request or a load: {parameters, signal}. */
export function toCallOptions(value, call) {
  const { parameters, signal } = checkOptions(value, `${call}: the options`, ['parameters', 'signal']);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(`${call}: signal is ${kindOf(signal)}; an AbortSignal is needed`);
  return { parameters: toParameters(parameters, `${call}: parameters`), signal };
}

function toCall(value, what) {
  const call = checkOptions(value, what, ['name', 'arguments', 'id']);
  return {
    name: checkText(call.name, `${what}.name`),
    arguments: checkText(call.arguments, `${what}.arguments`),
    id: checkText(call.id ?? '', `${what}.id`),
  };
}

function toMessage(value, what) {
  const { role, content, toolCalls = [], ...texts } = checkOptions(value, what, messageKeys);
  if (!roles.includes(role))
    throw new TypeError(`${what}.role is ${JSON.stringify(role)}; there are ${roles.join(', ')}`);
  const message = { role };
  if (Array.isArray(content))
    message.parts = content.map((part, i) => checkText(part, `${what}.content[${i}]`));
  else message.content = checkText(content, `${what}.content`);
  if (!Array.isArray(toolCalls))
    throw new TypeError(`${what}.toolCalls is ${kindOf(toolCalls)}; an array is needed`);
  message.toolCalls = toolCalls.map((call, i) => toCall(call, `${what}.toolCalls[${i}]`));
  for (const [name, text] of Object.entries(texts))
    if (text !== undefined) message[name] = checkText(text, `${what}.${name}`);
  return message;
}

export function toTokens(value, what) {
  if (viewKind(value) !== 'Int32Array' && !Array.isArray(value))
    throw new TypeError(`${what} are ${kindOf(value)}; an Int32Array is needed`);
  return Array.from(value, (token, i) => {
    if (!Number.isInteger(token) || token < 0 || token > 0x7fffffff)
      throw new TypeError(`${what}[${i}] is ${String(token)}; a token is a whole number from 0 on`);
    return token;
  });
}

/** A text, messages of which the last is answered, or an Int32Array of tokens to go on with. */
export function toRequest(prompt, parameters, call) {
  if (typeof prompt === 'string') return toJson({ prompt, parameters });
  if (viewKind(prompt) !== undefined)
    return toJson({ tokens: toTokens(prompt, `${call}: the tokens`), parameters });
  if (!Array.isArray(prompt))
    throw new TypeError(
      `${call}: the prompt is ${kindOf(prompt)}; a string, an array of messages or an Int32Array of tokens is needed`,
    );
  if (prompt.length === 0) throw new TypeError(`${call}: there are no messages; the last one is answered`);
  const messages = prompt.map((message, i) => toMessage(message, `${call}: messages[${i}]`));
  return toJson({ messages, parameters });
}
