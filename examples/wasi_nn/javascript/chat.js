// A component that chats: asks the model `default` what its arguments say, and prints a line for each piece of
// an answer as it comes.
import { getArguments } from "wasi:cli/environment@0.2.0";
import { Conversation } from "headrace:nn/conversations@0.1.0";
import { loadByName } from "wasi:nn/graph@0.2.0-rc-2024-10-28";

const parameters = JSON.stringify({ temperature: 0, n_predict: 64 });

export const run = {
  run() {
    try {
      const conversation = Conversation.open(loadByName("default"), undefined);
      for (const prompt of getArguments().slice(1)) {
        console.log(`> ${prompt}`);
        const answer = conversation.ask(prompt, parameters);
        for (let piece; (piece = answer.next()) !== undefined; ) console.log(piece);
        console.log(`tokens: ${JSON.parse(answer.metadata()).output_tokens}`);
      }
    } catch (error) {
      const { payload } = error;
      if (!payload) throw error;
      console.log(`${payload.code()}: ${payload.data()}`);
      throw undefined;
    }
  },
};
