"""A component that chats: asks the model `default` its arguments, and prints the answers as they come."""

import json
import sys

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports import graph
from wit_world.imports.conversations import Conversation

PARAMETERS = json.dumps({"temperature": 0, "n_predict": 64})


class Run(wit_world.exports.Run):
    def run(self) -> None:
        try:
            with graph.load_by_name("default") as model, Conversation.open(model, None) as conversation:
                for prompt in sys.argv[1:]:
                    print(">", prompt)
                    with conversation.ask(prompt, PARAMETERS) as answer:
                        while (piece := answer.next()) is not None:
                            print(piece, end="", flush=True)
                        print()
                        metadata = json.loads(answer.metadata())
                    print("tokens:", metadata["output_tokens"], file=sys.stderr)
        except Err as error:
            print(error.value.code().name, error.value.data(), file=sys.stderr)
            sys.exit(1)
