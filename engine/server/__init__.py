"""An OpenAI-compatible server as engine: vLLM, SGLang, TensorRT-LLM, llama-server, Ollama, LM Studio and their like.

Spoken with httpx2, which huggingface_hub brings along, and its reader of server-sent events. The openai client was
considered and left out: it cannot be told apart streams by choice without the same code around it, retries by itself
where a person should be able to stop, and validates away the odd chunks that real servers send.
"""
