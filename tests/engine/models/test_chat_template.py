"""Whatever form a template wants a text in: what the user and the system say arrives, or there is a sentence."""

import pytest

from engine.contract import BadRequest, Turn
from engine.models.chat import PromptEncoder
from tests.engine.models.test_chat import TEMPLATE, byte_tokenizer, text_of

PARTS = TEMPLATE.replace(
    "{{ m['content'] }}",
    "{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}",
)
STRICT_PARTS = TEMPLATE.replace("{{ m['content'] }}", "{{ m['content'][0]['text'] | trim }}")
SYSTEM_IS_TEXT = TEMPLATE.replace(
    "{{ m['content'] }}",
    "{% if m['role'] == 'user' %}{{ m['content'][0]['text'] }}{% else %}{{ m['content'] + '' }}{% endif %}",
)
THOUGHTS = TEMPLATE.replace("{{ m['content'] }}", "{{ m['content'].split('</think>')[-1] }}")
TRIMMED = TEMPLATE.replace("{{ m['content'] }}", "{{ m['content'] | trim }}")
NO_SYSTEM = TEMPLATE.replace("{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}")
OWN_SYSTEM = "<|start|>system\nYou are good.<|stop|>\n" + NO_SYSTEM


def encoder(template):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    return tokenizer, PromptEncoder(tokenizer)


@pytest.mark.parametrize("template", [TEMPLATE, PARTS, STRICT_PARTS, SYSTEM_IS_TEXT, THOUGHTS, TRIMMED])
@pytest.mark.parametrize("prompt", ["Write f.", "What is <|stop|>?", "a </think> b"])
def test_a_conversation_arrives_in_whatever_form(template, prompt):
    tokenizer, encode = encoder(template)
    turns = (Turn("user", "Hello"), Turn("assistant", "Hi"))
    want = "".join(
        f"<|start|>{role}\n{text}<|stop|>\n"
        for role, text in [("system", "Only code."), ("user", "Hello"), ("assistant", "Hi"), ("user", prompt)]
    )
    assert text_of(tokenizer, encode.chat(prompt, "Only code.", turns)) == f"{want}<|start|>assistant\n"


@pytest.mark.parametrize("template", [NO_SYSTEM, OWN_SYSTEM], ids=["dropped", "replaced"])
@pytest.mark.parametrize("system", ["Only code.", "  Only code.\n"])
def test_a_system_prompt_that_is_swallowed_is_put_before_the_users(template, system):
    tokenizer, encode = encoder(template)
    assert f"<|start|>user\n{system}\n\nWrite f.<|stop|>" in text_of(tokenizer, encode.chat("Write f.", system))


def test_blanks_around_a_system_prompt_that_are_taken_off_do_not_swallow_it():
    tokenizer, encode = encoder(TRIMMED)
    assert "<|start|>system\nOnly code.<|stop|>" in text_of(tokenizer, encode.chat("Write f.", "Only code.\n"))


def test_a_system_prompt_that_is_rewritten_is_put_before_the_users():
    tokenizer, encode = encoder(THOUGHTS)
    text = text_of(tokenizer, encode.chat("Write f.", "First </think> then."))
    assert "First </think> then.\n\nWrite f." in text


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (None, "has no chat template"),
        ("", "has no chat template"),
        ({"tool_use": TEMPLATE, "rag": TEMPLATE}, "chat templates are for rag and tool_use alone"),
        ("{{ raise_exception('not today') }}", r"does not work \(not today\)"),
        ("{{ messages[0].content + 1 }}", "does not work"),
        ("{{ 1 // 0 }}", "does not work"),
        ("{% for m in %}", "does not work"),
        ("{{ messages[5].role }}", "does not work"),
        (" ", "leaves out what the user says"),
        ("<|start|>assistant\n", "leaves out what the user says"),
        ("{% for m in messages %}{{ m['text'] }}{% endfor %}", "leaves out what the user says"),
    ],
)
def test_a_template_that_does_not_carry_the_prompt_is_refused(template, why):
    _, encode = encoder(template)
    encode.end_ids()  # asked at load: never a reason not to load
    with pytest.raises(BadRequest, match=rf"{why}.*choose the completion mode"):
        encode.chat("Write f.")
    assert encode.completion("Write f.")


def test_a_default_among_named_templates_is_taken():
    tokenizer, encode = encoder({"default": TEMPLATE, "rag": "{{ raise_exception('no') }}"})
    assert text_of(tokenizer, encode.chat("Write f.")) == "<|start|>user\nWrite f.<|stop|>\n<|start|>assistant\n"


def test_a_template_that_fails_in_the_middle_of_a_conversation():
    _, encode = encoder(TEMPLATE + "{% if messages | length > 2 %}{{ messages[0]['content'] + 1 }}{% endif %}")
    assert encode.chat("Write f.")
    with pytest.raises(BadRequest, match="does not take these turns"):
        encode.chat("More.", turns=(Turn("user", "a"), Turn("assistant", "b")))


def test_the_end_of_a_turn_is_found_where_answers_are_parts():
    tokenizer, encode = encoder(PARTS)
    assert tokenizer.convert_tokens_to_ids("<|stop|>") in encode.end_ids()
