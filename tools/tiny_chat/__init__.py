"""A chat model of 2.5 million parameters for a closed domain: models/tiny-chat-q8_0.gguf.

corpus.py, tasks.py, facts.py   conversations whose answers are known, made by a seeded generator
tokenizer.py                    byte-level BPE of 512 tokens
model.py, optimizer.py          a llama-shaped decoder, and how its weights are stepped
train.py                        python -m tiny_chat.train: everything from here to the GGUF
export.py                       weights and tokenizer as GGUF
evaluate.py                     python -m tiny_chat.evaluate: right answers per task
"""
