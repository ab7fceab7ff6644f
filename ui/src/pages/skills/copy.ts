/** Writes a run as a shell command that the user can paste into a terminal. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

export function asCurl(origin: string, name: string, inputs: Record<string, string>): string {
  return [
    `curl -N ${quote(`${origin}/api/v1/skills/${encodeURIComponent(name)}/run`)}`,
    `  -H "Authorization: Bearer $SAVOIR_TOKEN"`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quote(JSON.stringify({ inputs }))}`,
  ].join(' \\\n')
}

export function asCommand(name: string, inputs: Record<string, string>): string {
  const given = Object.entries(inputs).filter(([, value]) => value !== '')
  return [`savoir run ${name}`, ...given.map(([key, value]) => `  --input ${quote(`${key}=${value}`)}`)].join(' \\\n')
}
