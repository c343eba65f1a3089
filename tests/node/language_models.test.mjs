// LanguageModel: answers, streams, conversations and vectors, by the tiny model of models/.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

import { HeadraceError, LanguageModel } from '../../node/headrace.mjs';

const path = fileURLToPath(new URL('../../models/tiny-chat-q8_0.gguf', import.meta.url));
const addon = fileURLToPath(new URL('../../node/native/headrace-llm.node', import.meta.url));
const skip = !existsSync(addon) && 'this build has no llama.cpp: node/native/headrace-llm.node is not there';
const greedy = { temperature: 0, n_predict: 12 };
/** Goes on until it is told to stop. */
const endless = { temperature: 1, ignore_eos: true, n_predict: 100000 };

const model = skip
  ? null
  : await LanguageModel.load(path, {
      parameters: { n_ctx: 512, context_shift: true },
    });
after(() => model?.dispose());

async function textOf(stream) {
  let text = '';
  for await (const piece of stream) text += piece;
  return text;
}

test('a stream gives the text of the answer in pieces, and the reply after them', { skip }, async () => {
  const stream = model.stream('Hello', { parameters: greedy });
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  const reply = await stream.reply();
  assert.equal(pieces.join(''), reply.text);
  assert.equal((await model.generate('Hello', { parameters: greedy })).text, reply.text);
  assert.ok(reply.tokens instanceof Int32Array && reply.tokens.length === reply.generatedTokens);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
});

test('messages and tokens are prompts, too', { skip }, async () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: ['Hel', 'lo'] },
  ];
  assert.ok((await model.generate(messages, { parameters: greedy })).content.length > 0);
  const tokens = await model.tokenize('Hello');
  assert.equal(await model.detokenize(tokens), 'Hello');
  assert.equal((await model.generate(tokens, { parameters: greedy })).promptTokens, tokens.length);
});

test('pieces that are asked for at once come in their order', { skip }, async () => {
  const expected = (await model.generate('Hello', { parameters: greedy })).text;
  const stream = model.stream('Hello', { parameters: greedy });
  const pieces = await Promise.all(Array.from({ length: 40 }, () => stream.next()));
  assert.equal(pieces.map(({ value }) => value ?? '').join(''), expected);
});

test('answers at once share the model', { skip }, async () => {
  const alone = await model.generate('Hello', { parameters: greedy });
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => model.generate('Hello', { parameters: greedy })),
  );
  for (const { text } of replies) assert.equal(text, alone.text);
});

test('a conversation remembers what was said', { skip }, async () => {
  const talk = await model.conversation({
    parameters: { n_predict: 4, temperature: 0 },
  });
  const first = await talk.say('Hello');
  const second = await textOf(talk.stream('And you?'));
  assert.deepEqual(await talk.messages(), [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: first.content },
    { role: 'user', content: 'And you?' },
    { role: 'assistant', content: second },
  ]);
  const named = await model.conversation({ name: 'ours' });
  await named.say('Hello', { parameters: { n_predict: 2 } });
  assert.equal((await (await model.conversation({ name: 'ours' })).messages()).length, 2);
});

test('what is said at once is answered in turn, and a stream in between is busy', { skip }, async () => {
  const talk = await model.conversation({
    parameters: { n_predict: 3, temperature: 0 },
  });
  const answers = await Promise.all(['Hello', 'And you?', 'Bye'].map((text) => talk.say(text)));
  const messages = await talk.messages();
  assert.deepEqual(
    messages.map(({ content }) => content),
    ['Hello', 'And you?', 'Bye'].flatMap((text, i) => [text, answers[i].content]),
  );
  const stream = talk.stream('Hello', { parameters: endless });
  await stream.next();
  await assert.rejects(talk.say('And you?'), {
    code: 'busy',
    message: 'the conversation has an answer that is being read piece by piece; finish that first',
  });
  stream.cancel();
  await stream.reply();
});

test('what waits for its turn ends with its signal, and what follows goes on', { skip }, async () => {
  const talk = await model.conversation({
    parameters: { n_predict: 3, temperature: 0 },
  });
  const reason = new Error('enough');
  const controller = new AbortController();
  const first = talk.say('Hello');
  const second = talk.say('And you?', { signal: controller.signal });
  const third = talk.say('Bye');
  controller.abort(reason);
  await assert.rejects(second, reason);
  await Promise.all([first, third]);
  assert.deepEqual(
    (await talk.messages()).filter(({ role }) => role === 'user').map(({ content }) => content),
    ['Hello', 'Bye'],
  );
  await assert.rejects(talk.say('Hello', { signal: AbortSignal.abort(reason) }), reason);
});

test('half a surrogate pair in a text is read as U+FFFD', { skip }, async () => {
  const [cut, whole] = ['Hi \ud83d', 'Hi \ufffd'];
  const options = { parameters: { ...greedy, stop: [cut] } };
  const answer = (prompt) => model.generate(prompt, options).then(({ text }) => text);
  assert.equal(await answer(cut), await answer(whole));
  const said = [cut, whole].map((content) => [{ role: 'user', content }]);
  assert.equal(await answer(said[0]), await answer(said[1]));
  const talk = await model.conversation({ name: cut });
  await talk.say(cut, options);
  assert.equal((await talk.messages())[0].content, whole);
  assert.deepEqual(await model.tokenize(cut), await model.tokenize(whole));
});

test('an AbortSignal ends an answer with its reason', { skip }, async () => {
  const reason = new Error('enough');
  const controller = new AbortController();
  const stream = model.stream('Hello', {
    parameters: endless,
    signal: controller.signal,
  });
  await stream.next();
  controller.abort(reason);
  await assert.rejects(textOf(stream), reason);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });

  const timeout = AbortSignal.timeout(20);
  await assert.rejects(model.generate('Hello', { parameters: endless, signal: timeout }), {
    name: 'TimeoutError',
  });
  await assert.rejects(model.generate('Hello', { signal: AbortSignal.abort(reason) }), reason);
  await idle();
});

/** Until nothing goes on: cancelled requests end within a step. */
async function idle() {
  for (let i = 0; i < 200; i += 1) {
    const { running, waiting } = await model.statistics();
    if (running + waiting === 0) return;
    await sleep(25);
  }
  assert.fail('a request goes on');
}

test('who leaves the loop ends the answer', { skip }, async () => {
  for await (const piece of model.stream('Hello', { parameters: endless })) {
    assert.equal(typeof piece, 'string');
    break;
  }
  await idle();
});

test('an answer that is cancelled has what was written until then', { skip }, async () => {
  const stream = model.stream('Hello', { parameters: endless });
  const { value } = await stream.next();
  stream.cancel();
  const reply = await stream.reply();
  assert.equal(reply.stopReason, 'cancelled');
  assert.ok(reply.text.startsWith(value));
});

test('the event loop goes on while answers are written', { skip }, async () => {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  await Promise.all(
    Array.from({ length: 6 }, () =>
      model.generate('Hello', {
        parameters: { n_predict: 200, ignore_eos: true },
      }),
    ),
  );
  clearInterval(timer);
  assert.ok(turns > 3, `${turns} turns`);
});

test('a model that is loaded for it gives vectors', { skip }, async () => {
  const encoder = await LanguageModel.load(path, {
    parameters: { n_ctx: 256, embeddings: true, pooling: 'mean' },
  });
  assert.equal(encoder.kind, 'vectors');
  const { embeddingSize } = await encoder.information();
  const [one, two] = await encoder.embed(['Hello', 'Goodbye']);
  assert.ok(one instanceof Float32Array && one.length === embeddingSize);
  assert.deepEqual(await encoder.embed('Hello'), one);
  assert.notDeepEqual(two, one);
  const { signal } = new AbortController();
  const many = Array.from({ length: 150 }, (_, i) => `Hello ${i}`); // more than are given to the engine at once
  assert.deepEqual(await encoder.embed(many, { signal }), await encoder.embed(many));
  assert.deepEqual(await encoder.embed('Hello', { signal }), one);
  assert.deepEqual(await encoder.embed([], { signal }), []);
  await encoder.dispose();
  await assert.rejects(encoder.embed('Hello'), {
    code: 'invalid_state',
    message: /load it again/,
  });
});

test('a signal ends the work on vectors and scores with its reason', { skip }, async () => {
  const encoder = await LanguageModel.load(path, {
    parameters: { n_ctx: 256, embeddings: true, pooling: 'mean' },
  });
  const reason = new Error('enough');
  const signal = AbortSignal.abort(reason);
  const isReason = (error) => error === reason;
  await assert.rejects(encoder.embed('Hello', { signal }), isReason);
  await assert.rejects(encoder.embedTokens('Hello', { signal }), isReason);
  await assert.rejects(encoder.rerank('Hello', ['Goodbye'], { signal }), isReason);
  assert.equal((await encoder.statistics()).submitted, 0);
  const later = new AbortController();
  const vectors = encoder.embed(new Array(20000).fill('Hello there'), { signal: later.signal });
  await encoder.statistics(); // it has begun
  later.abort(reason);
  await assert.rejects(vectors, isReason);
  await encoder.embed('Hello');
  const { submitted } = await encoder.statistics();
  assert.ok(submitted > 0 && submitted < 20, `${submitted} were given to the engine`);
  await encoder.dispose();
});

test('what was called just before dispose is cancelled', { skip }, async () => {
  const texts = new Array(2000).fill('Hello there');
  for (let i = 0; i < 5; i += 1) {
    const encoder = await LanguageModel.load(path, {
      parameters: { n_ctx: 256, embeddings: true, pooling: 'mean' },
    });
    const calls = Array.from({ length: 4 }, () =>
      assert.rejects(encoder.embed(texts), { code: 'cancelled' }),
    );
    await Promise.all([...calls, encoder.dispose()]);
  }
});

test('an answer that dispose ends is rejected, read or waited for, and one that its reader ended is not', { skip }, async () => {
  const writer = await LanguageModel.load(path, { parameters: { n_ctx: 512, context_shift: true } });
  const talk = await writer.conversation();
  const options = { parameters: endless };
  const begun = async (stream) => {
    await stream.next();
    return stream;
  };
  const [read, left] = await Promise.all([
    begun(writer.stream('Hello', options)),
    begun(writer.stream('Hello', options)),
  ]);
  left.cancel();
  assert.equal((await left.reply()).stopReason, 'cancelled');
  const waited = [writer.generate('Hello', options), talk.say('Hello', options)];
  await begun(writer.stream('Hello', options)); // these have begun, too
  const isCancelled = (error) => error instanceof HeadraceError && error.code === 'cancelled';
  const rejected = [...waited, textOf(read)].map((promise) => assert.rejects(promise, isCancelled));
  await writer.dispose();
  await Promise.all(rejected);
  await assert.rejects(read.reply(), isCancelled);
});

test('a model without pooling says how to ask for its vectors in JavaScript', { skip }, async () => {
  const encoder = await LanguageModel.load(path, {
    parameters: { n_ctx: 256, embeddings: true, pooling: 'none' },
  });
  assert.equal(encoder.kind, 'token_vectors');
  await assert.rejects(encoder.embed('Hello'), { code: 'unsupported', message: /: see embedTokens, or load/ });
  assert.ok((await encoder.embedTokens('Hello')).length > 0);
  await encoder.dispose();
});

test('information and statistics say what the model is and does', { skip }, async () => {
  const information = await model.information();
  assert.equal(information.path, path);
  assert.equal(typeof information.metadata['general.architecture'], 'string');
  const before = await model.statistics();
  await model.generate('Hello', { parameters: greedy });
  const { finished, generatedTokens } = await model.statistics();
  assert.equal(finished, before.finished + 1);
  assert.ok(generatedTokens > before.generatedTokens);
});

const user = { role: 'user', content: 'Hello' };
const wrongCalls = [
  [() => model.generate(5), /the prompt is a number; a string, an array of messages or an Int32Array/],
  [() => model.generate([]), /no messages/],
  [() => model.generate([{ role: 'robot', content: '' }]), /messages\[0\].role is "robot"; there are system/],
  [() => model.generate([{ role: 'user' }]), /messages\[0\].content is undefined/],
  [() => model.generate([{ ...user, text: '' }]), /messages\[0\] has no "text"/],
  [() => model.generate('x', { temperature: 0 }), /no "temperature"; there are parameters, signal/],
  [
    () => model.generate('x', { parameters: { temperature: NaN } }),
    /temperature is NaN; it must be a finite/,
  ],
  [() => model.generate('x', { parameters: { stop: [5n] } }), /stop\[0\] is a bigint/],
  [() => model.generate('x', { signal: {} }), /an AbortSignal is needed/],
  [() => model.tokenize(5), /the text is a number/],
  [() => model.detokenize('x'), /an Int32Array is needed/],
  [() => model.embed([1]), /texts\[0\] is a number/],
  [() => model.conversation(null), /conversation: the options are null; an object is needed/],
  [() => model.conversation({ signal: AbortSignal.abort() }), /no "signal"; there are name, parameters/],
  [() => LanguageModel.load(5), /the path is a number/],
  [() => LanguageModel.load(new URL('https://host/x.gguf')), /path is a URL with https:; a path or a file: URL/],
  [() => LanguageModel.load(path, { n_ctx: 5 }), /no "n_ctx"; there are parameters/],
];
test('wrong calls are rejected with what is wrong and what is right', { skip }, async () => {
  for (const [call, message] of wrongCalls)
    await assert.rejects(call, (error) => error instanceof TypeError && message.test(error.message));
});

test('what the engine refuses has its code', { skip }, async () => {
  const isOurs = (code, message) => (error) =>
    error instanceof HeadraceError && error.code === code && message.test(error.message);
  await assert.rejects(LanguageModel.load('/none.gguf'), isOurs('not_found', /none\.gguf/));
  await assert.rejects(
    model.generate('x', { parameters: { top_p: 'high' } }),
    isOurs('invalid_argument', /top_p/),
  );
  await assert.rejects(model.embed('x'), isOurs('unsupported', /embeddings/));
  await assert.rejects(model.detokenize([999999]), isOurs('invalid_argument', /999999/));
});

const program = (end) => `
  const { LanguageModel } = require(${JSON.stringify(fileURLToPath(new URL('../../node/dist/headrace.cjs', import.meta.url)))});
  LanguageModel.load(${JSON.stringify(path)}, { parameters: { n_ctx: 512, context_shift: true } }).then(async (model) => {
    const stream = model.stream('Hello', { parameters: ${JSON.stringify(endless)} });
    const waits = [model.generate('Hello', { parameters: ${JSON.stringify(endless)} }), stream.next()];
    await stream.next();
    ${end}
    await Promise.all(waits);
  });`;

for (const [title, end, code] of [
  ['exits', 'process.exit(3);', 3],
  ['throws', "throw new Error('on purpose');", 1],
])
  test(`a process that ${title} while answers are written does so cleanly`, { skip }, () => {
    const { status, signal, stderr } = spawnSync(process.execPath, ['-e', program(end)], { timeout: 60000 });
    assert.deepEqual([status, signal], [code, null], `${stderr}`);
  });

test('a worker that is ended while answers are written takes them with it', { skip }, async () => {
  for (let i = 0; i < 3; i += 1) {
    const worker = new Worker(program("require('node:worker_threads').parentPort.postMessage('writes');"), {
      eval: true,
    });
    worker.on('error', (error) => assert.fail(error));
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
  }
  assert.ok((await model.generate('Hello', { parameters: greedy })).text);
});
