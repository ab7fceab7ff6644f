#!/usr/bin/env python3
"""Compares `savoir context simulate` with what a real agent sends to its model.

    unshare -rn scripts/compare_catalogues.py --savoir target/debug/savoir \\
        --agent codex --program PATH --model gpt-5.5 --context 272000 --set long

It installs a set of skills of `crates/agent/tests/data/catalogues.json` into an empty home and
project, starts the agent there with an endpoint on loopback as its model, and compares the list of
skills in its request with the simulation, text by text. `unshare` takes the network away from the
agent; loopback is all that it needs. Each agent comes from npm: @anthropic-ai/claude-code,
@openai/codex, opencode-ai, @aaif/goose (its binary), @google/gemini-cli, @qwen-code/qwen-code.
"""

import argparse
import fcntl
import html
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SETS = REPOSITORY / "crates/agent/tests/data/catalogues.json"
# The length of paths counts in the list of Codex.
PLACE = Path("/tmp/recorded-catalogues")
PATIENCE = 120
WORDS = (
    "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua "
)


def filler(length):
    text = (WORDS * (length // len(WORDS) + 1))[:length]
    return text[:-1] + "x" if text.endswith(" ") else text


def expand(text):
    """Replaces `{fill:N}` and `{N*c}`, as the test of the recordings does."""

    def value(match):
        return filler(int(match[1])) if match[1] else match[3] * int(match[2])

    return re.sub(r"\{(?:fill:(\d+)|(\d+)\*([^}]*))\}", value, text)


def generated(rules):
    """The skills that the test of the recordings makes from the same numbers."""
    state = rules["seed"]

    def below(end):
        nonlocal state
        state = (state * 1103515245 + 12345) % (1 << 31)
        return (state >> 8) % end

    for index in range(rules["count"]):
        letters = "abcdefghijklmnopqrstuvwxyz-abcdefghijklmn"[: 1 + below(40)]
        folder = f"s{index:03}-{letters.rstrip('-')}"
        length = rules["shortest"] + below(rules["longest"] - rules["shortest"])
        mixed = rules.get("mixed", False)
        description = f"{{{length // 2}*试}}" if mixed and index % 5 == 0 else f"{{fill:{length}}}"
        scope = "user" if mixed and index % 2 == 1 else "project"
        text = f"---\nname: {folder}\ndescription: {description}\n---\nDo it.\n"
        yield {"scope": scope, "folder": folder, "text": text}


def install(skills, folder):
    shutil.rmtree(PLACE, ignore_errors=True)
    for place in ("home", "project"):
        (PLACE / place).mkdir(parents=True)
    for skill in skills:
        scope = "home" if skill["scope"] == "user" else "project"
        target = PLACE / scope / folder / skill["folder"]
        target.mkdir(parents=True, exist_ok=True)
        (target / "SKILL.md").write_bytes(expand(skill["text"]).encode())
        if skill.get("side"):
            (target / "agents").mkdir()
            (target / "agents/openai.yaml").write_text(skill["side"])
    subprocess.run(["git", "init", "-q"], cwd=PLACE / "project", check=True)


def events(*pairs):
    lines = []
    for name, data in pairs:
        lines += [f"event: {name}\n"] if name else []
        lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "".join(lines).encode()


class Endpoint(BaseHTTPRequestHandler):
    """A model that answers `ok` in the protocol in which it is asked, and keeps the requests."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        stream = isinstance(body, bytes)
        body = body if stream else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"object": "list", "data": [], "models": []})

    def do_HEAD(self):
        self.answer({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "zstd":
            body = subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout
        asked = json.loads(body or b"{}")
        self.server.requests.append(asked)
        path = self.path.split("?")[0]
        for end, reply in REPLIES.items():
            if path.endswith(end):
                return self.answer(reply(asked))
        return self.answer({}, status=404)


def messages(asked):
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": asked.get("model")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not asked.get("stream"):
        return message | {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    parts = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return events(*((part["type"], part) for part in parts))


def responses(_):
    content = [{"type": "output_text", "text": "ok", "annotations": []}]
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    item |= {"content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": usage}
    parts = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    return events(*((part["type"], part) for part in parts))


def chat(asked):
    base = {"id": "c", "created": 1, "model": asked.get("model")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    message = {"role": "assistant", "content": "ok"}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return base | {"object": "chat.completion", "choices": [choice], "usage": usage}
    base["object"] = "chat.completion.chunk"
    first = {"index": 0, "delta": message, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [base | {"choices": [first]}, base | {"choices": [last], "usage": usage}]
    return events(*((None, chunk) for chunk in [*chunks, "[DONE]"]))


def gemini(_):
    content = {"role": "model", "parts": [{"text": "ok"}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return events((None, {"candidates": [candidate], "usageMetadata": usage}))


REPLIES = {
    "/messages": messages,
    "/responses": responses,
    "/chat/completions": chat,
    ":streamGenerateContent": gemini,
}


def claude_code(asked, url):
    environment = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "DISABLE_AUTOUPDATER": "1"}
    environment["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    return ["-p", "hello", "--model", asked.model, "--output-format", "json"], environment


def codex(asked, url):
    settings = PLACE / "home/.codex/config.toml"
    settings.parent.mkdir()
    settings.write_text(
        f'model = "{asked.model}"\nmodel_provider = "local"\napproval_policy = "never"\n'
        f"model_context_window = {asked.context}\n[model_providers.local]\n"
        f'name = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n'
    )
    return ["exec", "--skip-git-repo-check", "hello"], {"LOCAL_KEY": "x"}


def opencode(asked, url):
    model = {"name": asked.model, "limit": {"context": asked.context, "output": 4096}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "models": {asked.model: model}}
    provider["options"] = {"baseURL": f"{url}/v1", "apiKey": "x"}
    (PLACE / "project/opencode.json").write_text(json.dumps({"provider": {"local": provider}}))
    environment = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return ["run", "--model", f"local/{asked.model}", "hello"], environment


def goose(asked, url):
    environment = {"GOOSE_PROVIDER": "openai", "OPENAI_HOST": url, "OPENAI_API_KEY": "x"}
    environment |= {"GOOSE_MODEL": asked.model, "GOOSE_DISABLE_KEYRING": "1"}
    environment["GOOSE_CONTEXT_LIMIT"] = str(asked.context)
    return ["run", "--no-session", "-t", "hello"], environment


def gemini_cli(asked, url):
    settings = PLACE / "home/.gemini/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    environment = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url}
    return ["--yolo", "--skip-trust", "-m", asked.model, "-p", "hello"], environment


def qwen_code(asked, url):
    environment = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1"}
    return ["--yolo", "-m", asked.model, "-p", "hello"], environment


# How an agent is started, the text before its list, the text after it, and where entries start.
AGENTS = {
    "claude-code": (claude_code, "with the Skill tool:\n\n", "\n</system-reminder>", "\n- "),
    "codex": (codex, "### Available skills\n", "\n### ", "\n- "),
    "opencode": (opencode, "<available_skills>\n  <skill>", "</available_skills>", "<skill>"),
    "goose": (goose, "asked to use them:\n", "\n\n## ", "\n• "),
    "gemini-cli": (gemini_cli, "<available_skills>\n  <skill>", "</available_skills>", "<skill>"),
    "qwen-code": (qwen_code, "<available_skills>\n<skill>", "</available_skills>", "<skill>"),
}


def texts(value):
    if isinstance(value, str):
        yield value
    else:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for one in inner:
            yield from texts(one)


def plain(entry):
    """An entry without white space around it and without the escapes of XML."""
    return html.unescape(re.sub(r"\s+", " ", entry.removeprefix("- ").removeprefix("• "))).strip()


def real_list(asked):
    start_agent, before, after, between = AGENTS[asked.agent]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words, environment = start_agent(asked, f"http://127.0.0.1:{server.server_address[1]}")
    environment |= {"HOME": str(PLACE / "home"), "PATH": os.environ["PATH"], "TERM": "dumb"}
    done = subprocess.run(
        [asked.program, *words], cwd=PLACE / "project", env=environment, timeout=PATIENCE,
        stdin=subprocess.DEVNULL, capture_output=True,
    )
    server.shutdown()
    found = [text for request in server.requests for text in texts(request) if before in text]
    if not found:
        sys.exit(f"{asked.agent} sent no list of skills: {done.stderr[-500:]!r}")
    text = max(found, key=len)
    list_text = "\n" + text[text.index(before) + len(before) :].split(after)[0]
    if between == "<skill>":
        list_text = "<skill>" + list_text
    return [plain(entry) for entry in list_text.split(between) if entry.strip()]


def simulated_list(asked):
    done = subprocess.run(
        [Path(asked.savoir).resolve(), "context", "simulate", "--agent", asked.agent, "--json",
         "--context", str(asked.context)],
        cwd=PLACE / "project", capture_output=True, check=True,
        env={"HOME": str(PLACE / "home"), "PATH": os.environ["PATH"]},
    )
    skills = json.loads(done.stdout)["skills"]
    return [plain(skill["line"].replace("<skill>", "", 1)) for skill in skills if skill["visible"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--savoir", required=True)
    parser.add_argument("--agent", required=True, choices=AGENTS)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", default="m")
    parser.add_argument("--context", type=int, default=200_000)
    parser.add_argument("--set", default="edge")
    asked = parser.parse_args()
    interface = struct.pack("16sh", b"lo", 0x41)
    fcntl.ioctl(socket.socket(), 0x8914, interface)  # brings loopback up in the new network
    folder = ".claude/skills" if asked.agent == "claude-code" else ".agents/skills"
    rules = json.loads(SETS.read_text())["sets"][asked.set]
    skills = rules if isinstance(rules, list) else list(generated(rules))
    install([], folder)
    built_in = {re.split(r":| - |</name>", entry)[0] for entry in real_list(asked)}
    install(skills, folder)
    simulated = Counter(simulated_list(asked))
    real = Counter(real_list(asked))
    for entry in list(real - simulated):
        if re.split(r":| - |</name>", entry)[0] in built_in:
            del real[entry]
    same = (real & simulated).total()
    wrong = max((real - simulated).total(), (simulated - real).total())
    agreement = 1 - wrong / len(skills)
    print(f"{asked.agent}, {asked.set}: {same} of {real.total()} texts are the same; agreement {agreement:.3f}")
    for title, entries in (("only sent", real - simulated), ("only simulated", simulated - real)):
        for entry in entries:
            print(f"  {title}: {entry[:150]!r}")
    sys.exit(agreement < 0.98)


if __name__ == "__main__":
    main()
