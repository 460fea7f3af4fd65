/** `NAME=value` lines, as a `.env` file has them. */
export function envText(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .map(([name, value]) => `${name}=${value.includes('\n') ? JSON.stringify(value) : value}`)
    .join('\n');
}

/** Reads them back. `export`, comments, empty lines and quotes are understood, as people paste them. */
export function parseEnv(text: string): { env: Record<string, string>; problem?: string } {
  const env: Record<string, string> = {};
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim().replace(/^export\s+/, '');
    if (line === '' || line.startsWith('#')) continue;
    const at = line.indexOf('=');
    const name = line.slice(0, at).trim();
    if (at < 1 || !/^[A-Za-z_][\w.-]*$/.test(name))
      return {
        env,
        problem: `line ${index + 1}: write NAME=value, not ${JSON.stringify(line.slice(0, 60))}`,
      };
    env[name] = unquote(line.slice(at + 1).trim());
  }
  return { env };
}

function unquote(text: string): string {
  if (text.length > 1 && text.startsWith("'") && text.endsWith("'")) return text.slice(1, -1);
  if (text.length > 1 && text.startsWith('"') && text.endsWith('"')) {
    try {
      return JSON.parse(text) as string;
    } catch {
      return text.slice(1, -1);
    }
  }
  return text;
}
