// A chat with a GGUF model in the terminal. Ctrl-C ends an answer, an empty line the chat.
//
//     node examples/node/chat.mjs [MODEL.gguf]
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';

import { LanguageModel } from '../../node/headrace.mjs'; // 'headrace' where the package is installed

const tiny = fileURLToPath(new URL('../../models/tiny-chat-q8_0.gguf', import.meta.url));
const parameters = { n_ctx: 2048, logging: { level: 'none' } };
const model = await LanguageModel.load(process.argv[2] ?? tiny, { parameters });
const talk = await model.conversation();
const terminal = createInterface({ input: process.stdin, output: process.stdout });

let answer = null;
terminal.on('SIGINT', () => (answer ? answer.abort() : terminal.close()));
terminal.setPrompt('> ');
terminal.prompt();
for await (const line of terminal) {
  if (!line.trim()) break;
  answer = new AbortController();
  try {
    for await (const piece of talk.stream(line, { signal: answer.signal })) process.stdout.write(piece);
  } catch (error) {
    if (error.name !== 'AbortError') throw error;
  }
  answer = null;
  console.log();
  terminal.prompt();
}
terminal.close();
await model.dispose();
