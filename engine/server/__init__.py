"""An OpenAI-compatible server as engine: vLLM, SGLang, TensorRT-LLM, llama-server, Ollama, LM Studio and their like.

It uses httpx2, which huggingface_hub brings along, and its reader of server-sent events. The openai client (3.57,
built on the same library) was tried on the odd servers of our tests and left out: a stream that breaks off ends there
like one that is whole, because [DONE] is kept from the caller; an event without data is an error; an error in a stream
that is a bare text loses its words; and options beyond OpenAI's own go past its types anyway.
"""
