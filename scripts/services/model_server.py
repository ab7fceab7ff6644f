"""Serves a real language model on a loopback port: model_server.py WEIGHTS PORT_FILE

Serves SmolLM2 with the HTTP server of llama.cpp and writes its port into PORT_FILE once it answers.
"""

import os
import signal
import sys
import threading

import xllamacpp

# The ChatML template of the model, with a part about tools that we added: without that part,
# llama.cpp does not enforce `tool_choice`.
TEMPLATE = """\
{%- if tools %}<|im_start|>system
You may call these functions:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one as <tool_call>{"name": NAME, "arguments": {...}}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>{{ (call.function or call) | tojson }}</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def parameters(weights: str) -> "xllamacpp.CommonParams":
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {"smollm2"}
    params.hostname = "127.0.0.1"
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 1
    # A model this small may never stop generating.
    params.n_predict = 400
    # With more threads, the server becomes slower on a busy machine.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.use_jinja = True
    params.chat_template = TEMPLATE
    params.warmup = False
    params.webui = False
    return params


def main() -> None:
    weights, port_file = sys.argv[1:]
    server = xllamacpp.Server(parameters(weights))
    port = server.listening_address.rsplit(":", 1)[1]
    with open(port_file + ".new", "w") as file:
        file.write(port)
    os.rename(port_file + ".new", port_file)
    # The threads of the server never end by themselves.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    threading.Event().wait()


if __name__ == "__main__":
    main()
