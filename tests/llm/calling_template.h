#pragma once

namespace headrace {

/// A template that shows tools and writes calls as the tiny model does.
constexpr const char* kCalling = R"({%- if tools -%}<|im_start|>system
You can call {% for t in tools %}{{ t.function.name }}{% endfor %}.<|im_end|>
{% endif -%}
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%})";

}  // namespace headrace
